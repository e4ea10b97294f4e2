//! French.

use super::{Class::*, Row};

pub(super) const WORDS: &[Row] = &[
    (
        Health,
        "39 de|39,|39°|s'est fait mal|très mal|opérer|pas venu à l'école|n'est pas rentré|disparu|ne se réveille pas|vomit|a vomi|vomi|fièvre|malaise|évanoui*|inconscient*|douleur*|saigne|blessé*|s'est cogné|cogné|tombé*|cassé le|cassé la|points de suture|ambulance|samu|pompiers|urgences|contractions|allergique|avc|infarctus|vertiges|pleure|ne va pas bien|se sent mal|bloc opératoire",
    ),
    (
        Home,
        "grande ouverte|serrure|forcée|fracturée|de l'eau coule|de l'eau partout|plus d'eau|fuite|eau coule|dégât des eaux|inond*|odeur de gaz|fumée|cambriol*|les clés|mes clés|ta clé|digicode|code ne marche|ne s'ouvre pas|porte claquée|serrurier|en panne|dépann*|remorqu*|plus de courant|plus de chauffage|portail",
    ),
    (
        Ops,
        "le serveur est|la prod est|paiements échouent|à la douane|requêtes partent|timeout|502|503|504|erreur 500|ne répond|plante|planté|plantage|saturé|disque plein|personne ne peut|aucun client|les clients ne|bloqué*|coincé|retour arrière|rollback|piraté*|rançongiciel|mauvais compte|mauvais fichier|ne s'ouvre|se perdent|redémarr*",
    ),
    (
        Presence,
        "tu arrives ?|on commence sans|on commence ?|est sur le départ|retenu à la douane|est retenu|est déjà|sont déjà|déjà là|déjà dans la salle|dans la salle|devant moi|en face de moi|à côté de moi|est à votre|est à ta|à votre portail|à ta porte|à la porte|à l'entrée|en bas|attend|attendent|attendons|attends|patiente|chauffeur|livreur|technicien|plombier|repart|part dans|personne ne répond|personne ne vient|ça ne répond pas|sans toi|sans vous|sur scène|avec le client|avec un client|embarque|décolle|tout le monde est|on est tous|nous sommes tous",
    ),
    (
        Stakes,
        "j'accepte ?|on accepte ?|dans l'heure|on vous prend|il me faut une réponse|extinction de voix|décide à|remplaçant|sinon|à défaut|faute de quoi|trop tard|tombe à l'eau|on perd|nous perdons|caduc*|seul à|seule à|le seul|la seule|tu es le seul|il ne manque que|manque plus que|il manque|ta validation|votre validation|oui ou non|tranche|bloque tout|ferme le dossier|reste au port|sera annulé*|me remplacer|prendre ma place|pénalité|majoration|dernière minute|sans votre|sans ta|sans ton|sans réponse",
    ),
    (
        Now,
        "maintenant|en ce moment|tout de suite|d'une minute à l'autre|dans quelques minutes|quart d'heure|demi-heure|à l'instant|vient de",
    ),
    (
        Reach,
        "rappelle|rappelez|appelle-moi|appelez-moi|tu peux venir|viens vite|venez vite|peux-tu venir|pouvez-vous venir|pouvez-vous passer|vous joindre|te joindre|joindre au|n'arrivons pas à|injoignable|répondez pas|réponds pas|je suis au 0|passer le prendre|passer la prendre|descends|descendez|connecte-toi|connectez-vous|rejoins|rejoignez|décroche|décrochez|répondeur",
    ),
    (
        Past,
        "hier|la nuit dernière|semaine dernière|mois dernier|résolu|rétabli*|retour à la normale|réparé|compte rendu|compte-rendu|brouillon|article|brochure|chapitre|exercice|fausse alerte|bilan",
    ),
    (Enter, "saisissez|saisir|entrez|entrer|utilisez|tapez|code suivant|code ci-dessous"),
    (
        SignIn,
        "connecter|connexion|vérification|vérifier|confirmer|valider|authentifi*|valable|expire dans|appareil|identité",
    ),
    (
        Record,
        "voiture|place|échéance|prélevée|prélevé|police|prime|facture|reçu|billet|réservation|commande|livraison|livré*|colis|paiement|payé|montant|solde|relevé|consommation|virement|opération|remboursement|confirmation|confirmé*|référence|trajet|voyage|récapitulatif|renouvellement|abonnement|attestation|inscription|disponible en téléchargement|sauvegarde|échéancier",
    ),
    (
        Suit,
        "te va|vous va|ça t'irait|plutôt|à la place|au lieu|décaler|décale|repousser|avancer|ça te dit|ça te dirait|ça vous dit|on se fait|un verre|un café|déjeuner|dîner|entretien|rendez-vous|rdv|réunion|point de|visite|te convient|vous convient|possible pour|ça irait|ça ira|t'irait|préfères|préférez|dispo|agenda|un conflit|empêchement|autre jour|autre date",
    ),
    (Then, "d'ici là|avant cela|avant ça"),
    (
        Trouble,
        "panne|coupure|accident|blessé|blessée|incendie|feu|fuite|inondation|volé|volée|compromis|fuite de données|bloqué|bloquée|fumée|chute|hôpital|fièvre|inaccessible",
    ),
    (
        Call,
        "rappelle-moi|rappelez-moi|rappelle moi|rappelez moi|appelle-moi|appelez-moi|appelle moi|appelez moi|appelez le|appelle le|merci de rappeler|merci de me rappeler|merci d'appeler|passe-moi un coup de fil|joignable au",
    ),
    (
        Urgent,
        "dès que tu peux|dès que vous pouvez|vite s'il|urgent|urgente|urgents|urgentes|urgence|d'urgence|en urgence|très urgent|immédiatement|immédiat|tout de suite|au plus vite|le plus vite possible|dès que possible|le plus tôt possible|sans délai|sans attendre|dans les plus brefs délais|asap|presse|ça urge",
    ),
    (
        Live,
        "minutes encore|attends encore|te demande à la barre|venu chercher|venue chercher|personne n'est venu|ne passe pas|garderie ferme|sans toi|sans vous|on commence sans|en cuanto|est devant|attend en bas|attend à|attendent à|attendent en|nous attend|nous attendent|ouvre-moi|ouvrez-moi|laisse-moi entrer|peux-tu venir|pouvez-vous venir|je suis à la porte|à l'aéroport|à la gare|va fermer|va partir|en ligne avec|au téléphone avec|t'attend|vous attend|t'attendent|vous attendent|attend dehors|devant la porte|devant chez|à l'accueil|je suis en bas|je suis devant|est ici|est là|en ce moment même|tu es là|vous êtes là|où es-tu|où êtes-vous|tu es où|maintenant|enfermé dehors|coincé|viens chercher|venir chercher|venez chercher|venir le chercher|venir la chercher|ferme aujourd'hui|ferme à|commence dans|on t'attend|on vous attend",
    ),
    (
        Incident,
        "fichiers sont chiffrés|vient d'être volé|est hors ligne|plus aucun|plus personne ne|partent en timeout|se perdent|personne n'ouvre|à l'hôpital|est tombé|s'est blessé|a de la fièvre|a eu un accident|nous perdons|on perd des|surchauffe|plus rien ne marche|fuite d'eau|ne passe plus|ne passent plus|est tombé|est tombée|hors service|ne répond plus|ne fonctionne plus|ne marche plus|urgences|inondé|piraté|piratée|plus d'électricité|odeur de gaz|samu|pompiers|ne peuvent plus|impossible de se connecter",
    ),
    (
        Calm,
        "rien d'urgent|pas urgent|pas d'urgence|n'est pas urgent|aucune urgence|pas pressé|ça ne presse pas|rien ne presse|prends ton temps|prenez votre temps|quand tu pourras|quand vous pourrez|quand tu auras|quand vous aurez|quand tu as le temps|quand vous avez le temps|à l'occasion|à votre convenance|aucune action|aucune démarche|rien à faire|pas besoin de répondre|inutile de répondre|n'appelle pas de réponse|n'attend pas de réponse|pour information|pour info|à titre d'information|sans pression|peut attendre|semaine prochaine suffit|vous n'avez rien à faire|tu n'as rien à faire",
    ),
    (
        Request,
        "il faut|faut-il|j'accepte ?|on accepte|oui ou non|tu l'as ?|vous l'avez|il me faut|vous pouvez|peut-on|rappelle|envoie|d'accord pour|peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux|vous pouvez me|tu pourrais|s'il te plaît|s'il vous plaît|stp|svp|merci de|merci d'|veuillez|je vous prie de|prière de|dis-moi|dites-moi|dis moi|dites moi|fais-moi|faites-moi|envoie-moi|envoyez-moi|tiens-moi|tenez-moi|qu'en penses-tu|qu'en pensez-vous|qu'est-ce que tu|qu'est-ce que vous|ton avis|votre avis|votre accord|ton accord|votre signature|ta signature|votre validation|ta validation|votre réponse|ta réponse|votre retour|ton retour|j'ai besoin|nous avons besoin|on a besoin|il me faut|il nous faut|as-tu|avez-vous|sais-tu|savez-vous|puis-je|dois-je|est-ce que tu|est-ce que vous|seriez-vous|serais-tu|rappelle-moi|rappelez-moi|j'aimerais|je me demandais|pourrait-on|peut-on|pense à|pensez à|n'oublie pas|n'oubliez pas|auriez-vous|aurais-tu",
    ),
    (
        Formula,
        "merci de ne pas répondre|ne pas répondre à|pour toute question|une question ?|des questions ?|si vous avez des questions|n'hésitez pas|veuillez trouver|vous trouverez ci-joint|veuillez noter|veuillez conserver|contactez-nous|contactez notre|service client|cliquez ici|si vous n'êtes pas|ne communiquez|ne partagez|donnez votre avis|donnez-nous votre avis|besoin d'aide|connaissez-vous|envie de|merci de votre|merci pour votre|avant d'imprimer|veuillez agréer|je vous prie d'agréer|veuillez recevoir|merci d'avance",
    ),
    (
        Scheduling,
        "serais-tu disponible|seriez-vous disponible|es-tu disponible|êtes-vous disponible|tu serais disponible|vous seriez disponible|tu es dispo|êtes-vous dispo|es-tu dispo|serais-tu dispo|dispo pour|disponible pour|es-tu libre|êtes-vous libre|tu es libre|serais-tu libre|seriez-vous libre|vos disponibilités|tes disponibilités|disponibilités|te convient|vous convient|te conviendrait|vous conviendrait|conviendrait|t'arrange|vous arrange|t'irait|vous irait|reporter|décaler|avancer notre|avancer la réunion|déplacer notre|déplacer la réunion|déplacer le rendez-vous|annuler notre|annuler la réunion|annuler le rendez-vous|fixer un rendez-vous|fixer une date|fixer un créneau|convenir d'|créneau|créneaux|prendre rendez-vous|rendez-vous le|se voir|nous voir|nous rencontrer|se rencontrer|te rencontrer|vous rencontrer|se retrouver|on se retrouve|déjeuner|dîner|prendre un café|boire un café|un appel|quelle heure|quand es-tu|quand êtes-vous|quel jour|changement d'horaire|nouvel horaire|nouvelle date|entretien le|proposition de date*|proposition de créneau*|faire le point",
    ),
    (
        Transactional,
        "votre commande|confirmation de commande|confirmation de réservation|confirmation de paiement|confirmation d'inscription|confirmation de rendez-vous|numéro de commande|numéro de réservation|numéro de suivi|a été expédiée|a été expédié|a été envoyé|est en route|en cours de livraison|a été livré|a été livrée|livraison prévue|votre colis|votre livraison|paiement reçu|paiement accepté|paiement effectué|paiement confirmé|nous avons bien reçu|bien été reçu|bien été enregistré|bien été prise en compte|a bien été|merci pour votre commande|merci de votre commande|merci pour votre achat|merci de votre achat|merci pour votre réservation|votre reçu|reçu de paiement|votre facture|facture n|votre relevé|relevé de compte|relevé mensuel|relevé est disponible|bulletin de paie|bulletin de salaire|a été débité|a été crédité|prélèvement|virement reçu|remboursement|votre réservation|votre billet|vos billets|carte d'embarquement|renouvelé|avec succès|récapitulatif|accusé de réception|votre inscription|a accepté|accepté :|prêt à être retiré|sauvegarde terminée",
    ),
    (
        Failure,
        "échoué|a échoué|échec|refusé|refusée|rejeté|rejetée|non distribué|n'a pas pu|n'ont pas pu|impayé|impayée|en retard|relance|mise en demeure|rappel de paiement|retard de paiement|dernier rappel|solde dû|suspendu|suspendue|erreur|insuffisant|expiré|interrompu",
    ),
    (
        Code,
        "numéro de vérification|code suivant|code de vérification|code de sécurité|code de connexion|code à usage unique|code de confirmation|code d'accès|code d'authentification|mot de passe à usage unique|votre code|code est",
    ),
    (
        Reset,
        "réinitialiser votre mot de passe|réinitialisation du mot de passe|réinitialisation de votre mot de passe|lien de connexion",
    ),
    (
        Promo,
        "boostez|places limitées|certifiantes|testez|essayez|nos coups de cœur|plus que quelques heures|commandez|frais de port|toute la collection|vite|derniers jours|dès maintenant|arrive en boutique|promo|promotion|promotions|soldes|remise|réduction|réductions|% de remise|% de réduction|offre|offres|bon plan|bons plans|code promo|livraison gratuite|livraison offerte|profitez|profite|j'en profite|découvrez|découvrir|à partir de|jusqu'à -|dès|exclusif|exclusive|exclusivité|dernière chance|dernières heures|ne manquez pas|ventes privées|vente privée|nouvelle collection|nouveautés|black friday|gagnez|cadeau|cadeaux|acheter maintenant|j'achète|je commande|commandez|offert|gratuit|essai gratuit|webinaire|inscrivez-vous|à ne pas manquer|évadez-vous|craquez|prix mini|petits prix|bonnes affaires|places disponibles|fidélité",
    ),
    (
        Newsletter,
        "newsletter|lettre d'information|infolettre|cette semaine|dans ce numéro|l'actualité|actualités|version en ligne|voir dans le navigateur|afficher dans|lire la suite|en savoir plus|nos derniers|recette*|conseils|à la une",
    ),
    (
        Unsubscribe,
        "désabonner|désinscrire|désinscription|désabonnement|vous désabonner|ne plus recevoir|vous recevez cet e-mail|vous recevez cet email|vous recevez ce mail|gérer vos préférences|préférences d'e-mail",
    ),
    (
        By,
        "avant|avant le|avant la|d'ici|d'ici à|au plus tard|jusqu'à|jusqu'au|pour le|pour demain|pour ce soir|pour aujourd'hui|au plus tard le",
    ),
    (Due, "date limite|échéance|délai|dernier délai|clôture|expire|à rendre"),
    (Within, "dans|sous|d'ici|dans les|en moins de"),
    (Day(0), "aujourd'hui|ce matin|cet après-midi|ce soir|ce midi"),
    (Day(1), "demain|demain matin|demain soir|demain midi"),
    (Day(2), "après-demain"),
    (Hour(18), "fin de journée|fin de la journée|la fin de journée|dans la journée"),
    (Hour(12), "midi|ce midi|demain midi|ce matin|demain matin"),
    (Hour(17), "cet après-midi"),
    (Hour(20), "ce soir|demain soir"),
    (Hour(23), "minuit"),
    (Weekday(1), "lundi"),
    (Weekday(2), "mardi"),
    (Weekday(3), "mercredi"),
    (Weekday(4), "jeudi"),
    (Weekday(5), "vendredi"),
    (Weekday(6), "samedi"),
    (Weekday(7), "dimanche"),
    (NextWeek, "semaine prochaine|la semaine prochaine"),
    (ThisWeek, "cette semaine|fin de semaine|fin de la semaine|d'ici la fin de la semaine"),
    (ThisMonth, "fin du mois|fin de mois|ce mois-ci"),
    (NextMonth, "mois prochain|le mois prochain|du mois prochain"),
    (Month(1), "janvier"),
    (Month(2), "février"),
    (Month(3), "mars"),
    (Month(4), "avril"),
    (Month(5), "mai"),
    (Month(6), "juin"),
    (Month(7), "juillet"),
    (Month(8), "août"),
    (Month(9), "septembre"),
    (Month(10), "octobre"),
    (Month(11), "novembre"),
    (Month(12), "décembre"),
    (Minutes(1), "minute|minutes|min"),
    (Minutes(60), "heure|heures"),
    (Minutes(1440), "jour|jours"),
    (Minutes(10080), "semaine|semaines"),
    (Number(1), "une|l'|un"),
    (Number(2), "deux"),
    (Number(3), "trois"),
    (Number(4), "quatre"),
    (Machine, "message automatique|genere automatiquement|envoye automatiquement"),
];
