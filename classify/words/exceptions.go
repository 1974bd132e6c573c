package words

import "strings"

// exceptions are forms whose stems part although they are one word, mostly for
// a vowel that comes and goes, and short words that lose their meaning. Each
// line's forms get its first form as their stem.
var exceptions = tableOf(`
ядро ядра ядру ядром ядре ядер ядрам ядрами ядрах
игра игры игре игру игрой игрою игр играм играми играх
сеть сети сетью сетей сетям сетями сетях
чип чипа чипу чипом чипе чипы чипов чипам чипами чипах
сайт сайта сайту сайтом сайте сайты сайтов сайтам сайтами сайтах
микросхема микросхемы микросхеме микросхему микросхемой микросхем микросхемам микросхемами микросхемах
дистрибутив дистрибутива дистрибутиву дистрибутивом дистрибутиве дистрибутивы дистрибутивов дистрибутивам дистрибутивами дистрибутивах дистр дистра дистры дистров
взлом взлома взлому взломом взломе взломы взломов
окно окна окну окном окне окон окнам окнами окнах
письмо письма письму письмом письме писем письмам письмами письмах
суд суда суду судом суде суды судов судам судами судах
рынок рынка рынку рынком рынке рынки рынков рынкам рынками рынках
звонок звонка звонку звонком звонке звонки звонков звонкам звонками звонках
щенок щенка щенки щенков
участок участка участку участком участке участки участков участкам участками участках
игрок игрока игроку игроком игроке игроки игроков игрокам игроками игроках
день дня дню днем дне дни дней дням днями днях
огонь огня огню огнем огне огни огней
посол посла послу послы послов послам послами послах
закон закона закону законом законе законы законов законам законами законах
бюллетень бюллетеня бюллетени бюллетеней
ребенок ребенка дети детей детям детьми детях
человек человека человеку человеком человеке люди людей людям людьми людях
лев льва
датчик датчика датчику датчиком датчике датчики датчиков датчикам датчиками датчиках
плата платы плате плату платой плат платам платами платах
сборка сборки сборке сборку сборкой сборок сборкам сборками сборках
ошибка ошибки ошибке ошибку ошибкой ошибок ошибкам ошибками ошибках
скидка скидки скидке скидку скидкой скидок скидкам скидками скидках
разработка разработки разработке разработку разработкой разработок разработкам разработками разработках
приставка приставки приставке приставку приставкой приставок приставкам приставками приставках
поставка поставки поставке поставку поставкой поставок поставкам поставками поставках
атака атаки атаке атаку атакой атак атакам атаками атаках
прошивка прошивки прошивке прошивку прошивкой прошивок прошивкам прошивками прошивках
пошлина пошлины пошлине пошлину пошлиной пошлин пошлинам пошлинами пошлинах
видеокарта видеокарты видеокарте видеокарту видеокартой видеокарт видеокартам видеокартами видеокартах
карта карты карте карту картой карт картам картами картах
война войны войне войну войной войн войнам войнами войнах
мэр мэра мэру мэром мэре мэры мэров мэрам мэрами мэрах
news
mac macs
os
windows
kubernetes
ios
macos
aws
chess
gnus gnu
debian
media
apache
mice mouse
analyses analysis
dice
elected
election elections
elect electing
electronic electronics
electric electrical electricity
policy policies
police policing
politics politic
political politically politician politicians
general generally
generative
generate generates generated generating generation generations
organisation organisations organization organizations
universe universes
university universities
minister ministers
ministry ministries
new newer newest
gaming
game games gamed
gamer gamers
party parties
parties
port ports ported porting
portable
community communities
communist communists communism
commune communes
server servers
service services
serve serves served serving
international
internet
intern interns
compute computes computed computing
computer computers
train trains trained training trainings
trainer trainers
sky skies
lie lying lies lied
tie tying ties tied
die dying dies died
apple
apply applies applied applying
application applications app apps
`)

func tableOf(lines string) map[string]string {
	table := make(map[string]string)
	for line := range strings.Lines(lines) {
		forms := strings.Fields(line)
		for _, f := range forms {
			if _, taken := table[f]; !taken {
				table[f] = forms[0]
			}
		}
	}
	return table
}
