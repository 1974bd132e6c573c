#!/usr/bin/env bash
# Installs the servers that the bench compares with, where they are missing and
# apt can. It starts none: the bench runs its own on free ports of the loopback.
set -euo pipefail

missing=()
command -v python3 >/dev/null || missing+=(python3)
command -v redis-server >/dev/null || missing+=(redis-server)
if ! command -v postgres >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then
	missing+=(postgresql)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "Install ${missing[*]} (as root: apt-get install ${missing[*]}), or leave their peers out: make bench-peers PEERS=sqlite-go,jetstream" >&2
	exit 1
fi

# Packages of servers start them; this policy says no, and goes when we go.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends "${missing[@]}" >&2 ||
	{ apt-get update >&2 && apt-get install -y --no-install-recommends "${missing[@]}" >&2; }
