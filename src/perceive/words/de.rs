//! German.

use super::{Class::*, Row};

pub(super) const WORDS: &[Row] = &[
    (
        Health,
        "durchfall|bauchschmerzen|kopfverletzung|schüttelfrost|erkältet|kaum wach|nicht ansprechbar|isst nichts|einweisen|operieren|noch nicht in der schule|nicht nach hause gekommen|vermisst|verletzt|weint|übergeben|erbrochen|erbricht|fieber|schwindelig|ohnmächtig|bewusstlos|umgekippt|brustschmerzen|atemnot|blutet|platzwunde|gehirnerschütterung|gebrochen|krankenwagen|rettungswagen|notarzt|notaufnahme|wehen|fruchtblase|allergische reaktion|schlaganfall|herzinfarkt|geht es nicht gut|geht's nicht gut|geht es schlecht|liege mit|liege flach|im op|nicht vom sofa|nicht aufstehen|gestürzt|hingefallen",
    ),
    (
        Home,
        "wasser läuft|läuft wasser|wasser kommt|wasser tropft|tropft durch|durch die decke|von der decke|aufgebrochen|steht offen|rauchmelder|undicht|rohrbruch|überschwemmt|gasgeruch|nach gas|qualm|feuerwehr|einbruch|eingebrochen|schlüssel|türcode|kommt keiner rein|lässt sich nicht öffnen|springt nicht an|liegengeblieben|liegen geblieben|abgeschleppt|keine heizung|heizung ausgefallen|stromausfall",
    ),
    (
        Ops,
        "server steht|server ist|webshop steht|shop steht|lkw wird|am grenzübergang|am zoll|502|503|504|500er|timeout*|neustart|hängt|festgefahren|stürzt ab|abgestürzt|platte voll|festplatte voll|speicher voll|kassen|zahlungen gehen|kommt keiner|keiner kann|niemand kann|kunden können|rollback|zurückrollen|verschlüsselt|gehackt|falsche konto|falsche datei|lässt sich nicht|öffnet sich nicht|liefert nur noch",
    ),
    (
        Presence,
        "will eine freigabe|lässt mich nicht|kunde wartet|bis dienstschluss|steht seit|steht an|steht vor|stehe vor|stehen vor|steht bei|stehe in|sitzt bei|sitzt hier|sitzen hier|sitzen im|sitzen schon|sitze mit|ist schon da|sind schon da|alle da|wartet seit|warten seit|warten schon|warte seit|warte unten|wartet schon|warte noch|niemand öffnet|keiner macht auf|macht niemand auf|fahrer|spediteur|handwerker|monteur|kommst du|kommen sie noch|ohne dich|ohne sie anfangen|gegenüber|vor mir|neben mir|in der besprechung|bin beim kunden|gleich dran|geht gleich los|fährt wieder|fährt ab|abflug|boarding|auf der bühne|können sie kommen|kannst du kommen",
    ),
    (
        Stakes,
        "kannst du übernehmen|das übernehmen|sind blockiert|ist blockiert|soll ich sie stoppen|soll ich stoppen|stoppen|zusagen oder|wird festgehalten|hält uns auf|geht die meldung raus|dürfen wir ihn|dürfen wir sie|sonst|andernfalls|zu spät|verfällt|platzt|platzen|nicht mehr zu retten|rechtskräftig|nur du|nur sie|du hast den|du als einzige|als einziger|als einzige|ich nicht|einzige mit|es fehlt nur|fehlt noch|fehlt nur noch|ihre entscheidung|deine entscheidung|ja oder nein|entscheidet|kommen nicht weiter|kann nicht weiter|keine unterschrift|wenn bis|endet heute|läuft heute|heute ablaufend|fristablauf|frist endet|fällt aus|fällt flach|einspringen|vertragsstrafe|säumnis|letzte minute",
    ),
    (
        Now,
        "gleich los|seit heute früh|seit einer stunde|jetzt|gerade|noch immer|in wenigen minuten|viertelstunde|halbe stunde|halben stunde|diese minute|soeben",
    ),
    (
        Reach,
        "bitte kommen sie|können sie kommen|kommen sie bitte|hol ihn|hol sie|kurz durchgeben|ruf an|ruf mich|rufen sie an|rufen sie mich|telefonisch nicht erreicht|nicht erreicht|nicht erreichen|erreiche dich nicht|erreichen sie nicht|geh bitte ans telefon|ans telefon|ans handy|melde dich|melden sie sich|komm bitte|komm schnell|komm her|komm runter|komm hoch|wähl dich ein|wählen sie sich ein|rangehen|mailbox",
    ),
    (
        Past,
        "gestern|letzte nacht|letzte woche|vorige woche|nachbereitung|behoben|ist gelöst|wieder da|wieder erreichbar|läuft wieder|entwarnung|protokoll|entwurf|artikel|broschüre|kapitel|übung|probealarm|rückblick|fehlalarm",
    ),
    (Enter, "geben sie|eingeben|gib|verwenden sie|nutzen sie|tippen sie|folgenden code|diesen code|nachfolgenden code"),
    (
        SignIn,
        "anmeldung|anmelden|einloggen|login|bestätigen|verifizieren|verifizierung|freigabe|freigeben|authentifizierung|gültig|läuft in|gerät|zwei-faktor|einmal",
    ),
    (
        Record,
        "rücksendung|angekommen|eingegangen|abgebucht|police|beitrag|überwiesen|lastschrift|rechnung|beleg|quittung|ticket|fahrkarte|buchung|reservierung|bestellung|lieferung|zustellung|zugestellt|sendung|paket|zahlung|bezahlt|betrag|saldo|kontostand|abrechnung|verbrauch|überweisung|umsatz|erstattung|bestätigung|bestätigt|auftrag|vertrag|verlängerung|zusammenfassung|abgeschlossen|registriert|zum abruf|bescheinigung|gutschrift|abholung|kopie ihrer",
    ),
    (
        Suit,
        "legen|nach hinten|gespräch|ginge bei|kurzes gespräch|recht|umlegen|umzulegen|statt|stattdessen|lieber|alternativ|wie wäre|wie wär|lust auf|termin|kontrolltermin|treffen|gespräch|bewerbungsgespräch|besichtigung|kennenlernen|abstimmung|jour fixe|kaffee|mittagessen|bier|abendessen|ginge|geht auch|geht es auch|geht bei dir|klappt|klappen|schaffst du|schaffen sie|passt|passen|vorbeikommen|vorschlagen|zur auswahl",
    ),
    (Then, "bis dahin|vorher noch|davor noch"),
    (
        Trouble,
        "ausfall|down|unfall|verletzt|gestohlen|gehackt|kompromittiert|datenleck|datenverlust|stromausfall|rauch|panne|brand|feuer|klinik|krankenhaus|fieber",
    ),
    (
        Call,
        "ruf mich|rufen sie mich|rufen sie bitte|rufen sie uns|ruf bitte|ruf an|ruf kurz an|ruf zurück|rückruf|bitte anrufen",
    ),
    (
        Urgent,
        "gleich zurück|so schnell du kannst|so schnell sie können|schnell bitte|dringend|dringende|dringender|dringendst|eilt|eilig|eilige|sofort|sofortige|umgehend|so schnell wie möglich|so bald wie möglich|schnellstmöglich|schnellstens|unverzüglich|baldmöglichst|auf der stelle|notfall|asap|brennt|möglichst sofort",
    ),
    (
        Live,
        "minuten warten|bitte holen sie|holen sie ihn|holen sie sie|hol bitte|nach hause|ohne dich an|ohne sie an|fangen wir an|gleich zurück|halben stunde eine|wartet unten|wartet im|warten im|warten unten|steht unten|komm runter|komme nicht ins|ist da und|sonst nimmt er|bin ausgesperrt|ich bin unten|am bahnhof|am flughafen|am empfang|in der leitung|am telefon|wartet auf dich|wartet auf sie|warten auf dich|warten auf sie|steht vor der tür|stehe vor der tür|stehen vor der tür|ich stehe|ist gerade|sitzt gerade|wartet|melde dich sofort|bist du da|sind sie da|wo bist du|wo bleibst du|ausgesperrt|komme nicht rein|kommen nicht rein|hol ihn ab|hol sie ab|abholen|abzuholen|gerade jetzt|jetzt gleich|jetzt sofort|gleich los|fängt gleich an|schließt heute|schliesst heute|macht heute um",
    ),
    (
        Incident,
        "dateien verschlüsselt|gestohlen worden|wurde gestohlen|geklaut|kassen im laden stehen|nicht mehr verkaufen|stehen alle|komplett ausgefallen|seit einer stunde nicht|nur noch 502|nur noch 503|seit heute früh nicht|kaum wach|gefährlich hoch|läuft wasser|gebrochen|eingeliefert|ins krankenhaus|im krankenhaus|in die klinik|hat sich verletzt|hat fieber|geht nichts mehr|überhitzt|wir verlieren|brennt es|es brennt|ist ausgefallen|ist down|ausgefallen|nicht erreichbar|steht still|funktioniert nicht mehr|geht nicht mehr|abgestürzt|notaufnahme|gestürzt|wasserrohrbruch|wasserschaden|wasser läuft|läuft aus|kein strom|gasgeruch|kunden können nicht|niemand kann sich|können keine",
    ),
    (
        Calm,
        "eilt nicht|keine eile|nicht eilig|nicht dringend|ist nicht dringend|nichts dringendes|hat zeit|kein stress|in ruhe|wenn du zeit hast|wenn sie zeit haben|bei gelegenheit|wann immer|irgendwann|keine antwort nötig|keine antwort erforderlich|keine rückmeldung nötig|nichts weiter tun|nichts tun|nichts zu tun|nichts unternehmen|kein handlungsbedarf|keine aktion erforderlich|zur kenntnis|zur info|zu ihrer information|nur zur information|nächste woche reicht|reicht auch nächste woche|ohne druck|kein druck|für ihre unterlagen|nicht nötig zu antworten",
    ),
    (
        Request,
        "brauche|brauchen|schickst du|übernehmen|geh bitte|soll ich|dürfen wir|passt das|ja oder nein|einverstanden|bitte|könntest du|können sie|könnten sie|kannst du|kannst mir|würdest du|würden sie|magst du|hast du|haben sie|wärst du|wären sie|schick mir|schicken sie mir|sag mir|sagen sie mir|gib mir|geben sie mir|lass mich wissen|lassen sie mich wissen|gib bescheid|geben sie bescheid|sag bescheid|bescheid geben|was meinst du|was meinen sie|was hältst du|was halten sie|deine meinung|ihre meinung|ich brauche|wir brauchen|brauchen wir von|brauche ich von|ich bräuchte|wir benötigen|benötigen wir|benötige ich|ihre rückmeldung|deine rückmeldung|um rückmeldung|ihre antwort|deine antwort|ihre unterschrift|deine unterschrift|ihre freigabe|deine freigabe|ihre zustimmung|um antwort|um freigabe|darf ich|soll ich|sollen wir|weißt du|wissen sie|wie siehst du|ruf mich|rufen sie|ich wäre dankbar|wären wir dankbar|ich frage mich|denk dran|denk bitte|vergiss nicht|welche|wir bitten sie",
    ),
    (
        Formula,
        "bitte antworten sie nicht|bitte nicht antworten|bei fragen|bei rückfragen|falls sie fragen haben|haben sie fragen|wenn sie fragen haben|noch fragen|bitte beachten sie|bitte bewahren sie|im anhang finden sie|anbei finden sie|stehen wir ihnen|wenden sie sich|kontaktieren sie uns|klicken sie hier|falls sie nicht|wenn sie diese|bitte geben sie niemandem|teilen sie diesen code|bewerten sie|wie zufrieden|kennen sie schon|haben sie schon|wussten sie|lust auf|bitte denken sie an die umwelt|bitte prüfen sie, ob sie diese|vielen dank für",
    ),
    (
        Scheduling,
        "wann hätten|halbe stunde für|zeit für einen|zeit für ein|zeit für eine|für einen kaffee|auf ein bier|zum mittagessen|zum essen|ein treffen|termin verschieben|termin am|termin absagen|termin vereinbaren|termin finden|terminvorschlag|terminvorschläge|terminabsprache|terminanfrage|terminfindung|terminverschiebung|neuer termin|neuen termin|anderen termin|ausweichtermin|verschieben|verschoben|vorverlegen|verlegen|passt dir|passt es dir|passt ihnen|passt es ihnen|ihnen passen|dir passen|passen würde|würde dir passen|passt euch|passen dir|passen ihnen|hast du zeit|haben sie zeit|hättest du zeit|hätten sie zeit|habt ihr zeit|wann hast du|wann haben sie|wann hättest|wann passt|wann können wir|wann könnten wir|bist du frei|sind sie verfügbar|wären sie verfügbar|verfügbarkeit|treffen wir uns|uns treffen|wollen wir uns|sollen wir uns|können wir uns|könnten wir uns|mittagessen|auf einen kaffee|kaffee trinken|kurz telefonieren|telefonieren|telefontermin|zeitfenster|uhrzeit|zusammensetzen|besprechung verschieben|meeting verschieben|absagen|einladung zum gespräch|vorstellungsgespräch",
    ),
    (
        Transactional,
        "ihre bestellung|bestellbestätigung|auftragsbestätigung|buchungsbestätigung|reservierungsbestätigung|terminbestätigung|bestellnummer|auftragsnummer|buchungsnummer|rechnungsnummer|versandbestätigung|wurde versandt|wurde versendet|wurde verschickt|ist unterwegs|wird zugestellt|wurde zugestellt|zugestellt|sendungsnummer|sendungsverfolgung|zahlungsbestätigung|zahlungseingang|zahlung erhalten|ihre zahlung|ist eingegangen|quittung|ihr beleg|zahlungsbeleg|kaufbeleg|vielen dank für ihre bestellung|vielen dank für ihre buchung|vielen dank für ihren einkauf|vielen dank für ihre zahlung|kontoauszug|abrechnung steht|gehaltsabrechnung|ihre rechnung|rechnung finden sie|wurde abgebucht|abgebucht|wurde belastet|gutschrift|gutgeschrieben|erstattung|rückerstattung|ihre buchung|ihre reservierung|ihr ticket|ihre tickets|ihre fahrkarte|bordkarte|wurde verlängert|verlängert sich automatisch|erfolgreich abgeschlossen|erfolgreich|ihr paket|ihre lieferung|ihre sendung|ihre anmeldung|anmeldebestätigung|eingangsbestätigung|wir haben ihre|abholbereit|zugesagt:|sicherung abgeschlossen|lastschrift",
    ),
    (
        Failure,
        "fehlgeschlagen|gescheitert|nicht eingelöst|konnte nicht|konnten nicht|unzustellbar|nicht zugestellt|abgelehnt|mahnung|zahlungserinnerung|überfällig|offener betrag|offene rechnung|offene forderung|rückstand|nicht bezahlt|unbezahlt|rücklastschrift|fehler|gesperrt|abgebrochen|mahngebühr|letzte mahnung|speicher ist voll",
    ),
    (
        Code,
        "bestätigungsziffern|bestätigungsnummer|prüfziffern|bestätigungscode|sicherheitscode|anmeldecode|einmalcode|einmalpasswort|einmalkennwort|verifizierungscode|zugangscode|ihr code|dein code|code lautet|login-code|freigabecode|tan lautet|ihre tan",
    ),
    (Reset, "passwort zurücksetzen|passwort zurückzusetzen|kennwort zurücksetzen|anmeldelink|login-link"),
    (
        Promo,
        "jetzt testen|plätze frei|unsere liebsten|entdecken|neu eingetroffen|portofrei|jetzt buchen|ab 99|sonne satt|schnell sein|stöbern|euro sparen|frei haus|ab in den|rabatt|% rabatt|prozent rabatt|angebot|angebote|sale|schnäppchen|jetzt sichern|jetzt kaufen|jetzt bestellen|jetzt shoppen|jetzt stöbern|jetzt entdecken|zum shop|zum angebot|im shop|gutschein|gutscheincode|versandkostenfrei|gratis|kostenlos testen|nur heute|nur noch|nur für kurze zeit|sparen sie|spare|bis zu|exklusiv|exklusive|neuheiten|neue kollektion|letzte chance|nicht verpassen|black friday|gewinnspiel|gewinnen sie|aktion|sonderangebot|sichern sie sich|entdecken sie|entdecke|geschenkideen|prämie|vorteil|ab nur|reduziert|webinar|jetzt anmelden|frühbucher|highlights|günstig",
    ),
    (
        Newsletter,
        "newsletter|wochenrückblick|diese woche|in dieser ausgabe|ausgabe|im browser ansehen|im browser anzeigen|online ansehen|unsere neuesten|weiterlesen|mehr lesen|mehr erfahren|rezept*|tipps|neu im|neues aus|veranstaltungstipps",
    ),
    (
        Unsubscribe,
        "abmelden|abbestellen|newsletter abbestellen|vom newsletter|austragen|sie erhalten diese e-mail|du erhältst diese e-mail|sie erhalten diesen newsletter|keine weiteren e-mails|e-mail-einstellungen|widerrufen",
    ),
    (By, "bis|bis zum|bis spätestens|spätestens|spätestens bis|vor|noch vor|bis um|bis heute|bis morgen"),
    (
        Due,
        "frist|fällig|fällig am|stichtag|abgabe|einsendeschluss|anmeldeschluss|abgabetermin|deadline|läuft ab|läuft heute ab",
    ),
    (Within, "in|innerhalb von|innerhalb|binnen|in den nächsten|innerhalb der nächsten"),
    (Day(0), "heute|heute noch|heute abend|heute nachmittag|heute mittag|heute früh|heute vormittag"),
    (Day(1), "morgen|morgen früh|morgen mittag|morgen abend|morgen vormittag|morgen nachmittag"),
    (Day(2), "übermorgen"),
    (Hour(18), "feierabend|dienstschluss|ende des tages|tagesende|büroschluss"),
    (Hour(21), "heute abend|morgen abend"),
    (Hour(17), "heute nachmittag|morgen nachmittag|nachmittags"),
    (Hour(12), "mittag|mittags|heute mittag|morgen mittag|heute vormittag|morgen vormittag"),
    (Hour(9), "morgen früh|heute früh"),
    (Hour(23), "mitternacht"),
    (Weekday(1), "montag|montags|montagmorgen|montagabend|montagmittag|montagnachmittag"),
    (Weekday(2), "dienstag|dienstagmorgen|dienstagabend|dienstagmittag|dienstagnachmittag"),
    (Weekday(3), "mittwoch|mittwochmorgen|mittwochabend|mittwochmittag|mittwochnachmittag"),
    (Weekday(4), "donnerstag|donnerstagmorgen|donnerstagabend|donnerstagmittag|donnerstagnachmittag"),
    (Weekday(5), "freitag|freitagmorgen|freitagabend|freitagmittag|freitagnachmittag"),
    (Weekday(6), "samstag|sonnabend"),
    (Weekday(7), "sonntag"),
    (NextWeek, "nächste woche|nächster woche|kommende woche|kommender woche"),
    (ThisWeek, "diese woche|dieser woche|ende der woche|wochenende|ende dieser woche"),
    (ThisMonth, "ende des monats|monatsende|diesen monat"),
    (NextMonth, "nächsten monat|nächsten monats|nächster monat|kommenden monat|kommenden monats"),
    (Month(1), "januar|jan"),
    (Month(2), "februar|feb"),
    (Month(3), "märz"),
    (Month(4), "april"),
    (Month(5), "mai"),
    (Month(6), "juni"),
    (Month(7), "juli"),
    (Month(8), "august"),
    (Month(9), "september"),
    (Month(10), "oktober|okt"),
    (Month(11), "november"),
    (Month(12), "dezember|dez"),
    (Minutes(1), "minute|minuten|min"),
    (Minutes(60), "stunde|stunden|std"),
    (Minutes(1440), "tag|tage|tagen"),
    (Minutes(10080), "woche|wochen"),
    (Number(1), "einer|eine|einem"),
    (Number(2), "zwei"),
    (Number(3), "drei"),
    (Number(1), "eins"),
    (Number(4), "vier"),
    (Number(5), "fünf"),
    (Number(6), "sechs"),
    (Number(7), "sieben"),
    (Number(8), "acht"),
    (Number(9), "neun"),
    (Number(10), "zehn"),
    (Number(11), "elf"),
    (Number(12), "zwölf"),
    (Machine, "automatisch erzeugt|automatisch generiert|automatisch erstellt|automatische nachricht"),
];
