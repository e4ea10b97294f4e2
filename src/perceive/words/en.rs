//! English.

use super::{Class::*, Row};

pub(super) const WORDS: &[Row] = &[
    (
        Health,
        "was taken ill|taken dad in|taken mum in|taken mom in|taken him in|taken her in|hasn't arrived at school|not at school|is missing|hasn't come home|won't wake up|cut paw|hit by a car|operate again|her permission to operate|off his feet|can't get up|threw up|throwing up|vomit*|feverish|fever|chest pain*|chest pains|unconscious|collapsed|not breathing|breathing|fainted|dizzy|broke his|broke her|broken arm|broken leg|hit his head|hit her head|hit my head|concussion|stitches|allergic reaction|seizure|stroke|heart attack|ambulance|paramedics|a&e|emergency room|the er|urgent care with|contractions|waters broke|waters have broken|is hurt|got hurt|hurt himself|hurt herself|bleeding|burned|cut his|cut her|unwell|sick at school|temperature of|is poorly|is in surgery",
    ),
    (
        Home,
        "pouring|through her ceiling|through the ceiling|through my ceiling|dripping|burst|leak|flood*|smell of gas|smell gas|smoke|alarm is going|alarm went off|alarm keeps|break-in|broken into|broke in|burglar*|the bell|spare key|my keys|the keys|no key|key doesn't|code doesn't work|door code|can't get out|won't open|won't start|broke down|breakdown|crash|car accident|towed|tow truck|heating is out|no heating|no water|no electricity|power cut",
    ),
    (
        Ops,
        "override|degrees and rising|alarm company|froze the account|frozen the account|isn't picking up|won't let me past|can't find the badge|badge doesn't work|prod is|on prod|dropped at|link is down|held at customs|stuck at customs|paged|stuck at the border|won't unload|card declined|sent to the wrong|we sent the wrong|instead of 1|can check out|can pay|can order|can log in|timing out|time out|timeouts|500s|502|503|504|5xx|stuck|hung|rolling back|roll back|disk at|disk full|out of disk|out of memory|replica|dropping orders|losing data|locked out|api is|nobody can|no one can|customers are|users are|won't boot|keeps crashing|crashing|crash loop|paged|rollback|hacked|breach|ransomware|phished|wrong account|wrong file|sent to the wrong|doesn't open|won't open|corrupt",
    ),
    (
        Presence,
        "at the door|at the gate|at reception|at the airport|in the lobby|the driver is|the courier is|still waiting here|waiting for you|at the counter|has arrived|have arrived|is on the step|is at reception|at your flat|at your door|at your house|at your office|at your desk|at the office|at the entrance|outside your|nobody answers|no one answers|no answer|i'm at|i am at|we're at|we are at|i'm here|we're here|are sat|been sat|sitting in|sat in|are sitting|is sitting|in the room|in room|is waiting|are waiting|i can wait|can't wait|has been waiting|have been waiting|everyone is here|everybody is here|everyone's here|you coming|are you coming|are you on your way|on your way?|where should|without you|start without|begin without|on stage|before we walk in|we go in|go live|going live|on air|the technician|the plumber|the engineer is|is asking for|in front of me|with the client|with a customer|on the other line|holding the line|i'm with|we're with|about to|leaving in|leaves at|departs|taking off|landed|final call",
    ),
    (
        Stakes,
        "if you still want it|say so before|isn't in the folder|not in the folder yet|you promised|printing at|goes to print|hasn't arrived|is blocked on|blocked until|decides at|decides today|decides this|or let it go|stop it or|do i accept|do we accept|should i stop|shall i stop|do you authorise|do you authorize|what do i do|what should i do|what do we do|running the story|before she leaves|before he leaves|guests arrive|before they|otherwise|or else|or we lose|we lose|we'll lose|lapses|lapse|falls through|fall through|too late|last chance to|only you|you're the only|you are the only|only one with|only one who|you do.|before i touch|need an answer|need a yes|yes or no|go or no-go|go/no-go|decide now|can't proceed|cannot proceed|can't go ahead|can't move|can't continue|on hold until|holding up|holding us up|is held up|missing only|still missing|we haven't got|haven't received your|cut-off|cutoff|got cancelled|no-show|offer expires|gives us until|gave us until|given us until|the window closes|slot closes|will be cancelled|be released to|goes to someone else|next in line",
    ),
    (
        Now,
        "right now|as we speak|is now|are now|from now|at the moment|this minute|just now|any second|any minute|straight after|in the next few minutes|quarter of an hour|half an hour|within the hour|this hour",
    ),
    (
        Reach,
        "talk to you|only talk to you|text them|phoned|ring the|ring him|ring her|ring us|call him|call her|call us|call the|call back|phone the|phone is|text me|on my mobile|my number|on my cell|pick up|couldn't reach|could not reach|can't reach|tried calling|tried to call|tried your phone|your phone|voicemail|answer your phone|come over|come now|come down|come here|come home|come to the|get here|get over here|pick him|pick her|join us|join now|join the call|dial in|hop on|jump on",
    ),
    (
        Past,
        "yesterday|last night|last week|last month|post-mortem|postmortem|retrospective|was resolved|is resolved|has been resolved|resolved|fixed now|back to normal|is back|back up|restored|all clear|false alarm|no longer|lessons learned|write-up|writeup|summary of|draft|brochure|article|paper|chapter|story|novel|drill|exercise|simulation|test alert|training",
    ),
    (Enter, "enter|use|type|copy|input|paste|with code|with the code|code below|following code"),
    (
        SignIn,
        "sign in|signing in|sign-in|sign-on|log in|logging in|login|log-in|verify|verification|verifying|confirm your|confirm it's you|confirm the|authenticate|authorise|authorize|authorisation|two-step|two-factor|passcode|one-time|your device|new device|unrecognized|unrecognised|code works|works for|valid for|expires in|expires after|stops working",
    ),
    (
        Record,
        "returned|on loan|direct debit|we will collect|premium|policy|renewed|credited|shipped|signed document|licence key|check-out|thanks for your|invoice|receipt|ticket|tickets|booking|reservation|order|delivery|delivered|dispatched|shipment|parcel|package|payment|paid|total|balance|statement|usage|transfer|transaction|deposit|refund|confirmation|confirmed|reference|itinerary|trip|seat|summary|renewal|subscription|account activity|certificate|registered|completed|your copy|a copy of|attached is your|available for download|tax document|policy documents|warranty|backup|report for|points balance|check-in",
    ),
    (
        Suit,
        "talk on|i'm around|i am around|which would you like|which do you want|we have|can offer|could offer|offer you|noon works|works for me|works best|fancy a|suits me|suits you|suit you|be possible for you|possible for you|instead?|instead of|could we do|can we do|shall we do|shall we say|how about|what about|fancy|second interview|an interview|works on my side|good on my side|good for me|good for you|better for you|prefer|move our|shift|swap|another day|a different day|a new slot|earlier or later|make it|can make|can't make|cannot make|can you make|up for|join us for|come by|drop by|stop by|visit you|see you on|coffee|lunch|dinner|drinks|a pint|a beer|catch-up|catch up|sync|one-on-one|1:1|kick-off|kickoff|meeting|appointment|viewing|demo with|your availability|free slot*|calendar",
    ),
    (Then, "before then|by then|until then|before that"),
    (
        Trouble,
        "outage|data loss|data breach|compromised|accident|ambulance|crashed|unreachable|smoke|stopped working|broke down|hospital|checkout is",
    ),
    (Call, "call me|ring me|give me a call|phone me|call back|call my|call us now"),
    (
        Urgent,
        "as quickly as you can|as fast as you can|quickly please|the moment you|urgent|urgently|asap|as soon as possible|as soon as you can|immediately|right away|emergency|time-sensitive|time sensitive|at once|without delay|cannot wait|can't wait|drop everything|straight away|straightaway|this minute|immediate attention",
    ),
    (
        Live,
        "can wait ten|can wait five|can only wait|wait ten minutes|wait five minutes|you're chairing|you are chairing|starts in a minute|starts in a few|starts in five|starts in ten|won't let me past|won't let us in|i'm at the door|i'm at the gate|i'm at the airport|i am at the door|i am at the gate|i am at the airport|we're at the gate|we're at the door|is at the door|are at the door|is at reception|are at reception|is in the lobby|are in the lobby|is at the gate|where are you?|client is here|clients are here|they're here|he's here|she's here|without you|start without|begin without|joining?|are you joining|asking for you|nobody answers the bell|let me in|let us in|waiting in the|waiting at the|waiting downstairs|is outside|are outside|arrived and|has arrived and|won't let me|need someone to|someone needs to|stranded|missed my|gate closes|about to start|about to leave|about to sign|about to close|withdraw the offer|before he leaves|before she leaves|before they leave|on the line|on the phone with|waiting for you|waiting on you|waiting outside|i'm outside|i am outside|is here now|are here now|right now|pick up your phone|are you there|are you around|you there?|blocked on you|stuck until you|can't start without|can't continue without|on hold with|closes today|doors close|boarding|starting now|just started|we are live|we're live|come get|come and get|pick him up|pick her up|pick them up|collect him|collect her|standing here|standing outside|locked out|can't get in|cannot get in",
    ),
    (
        Incident,
        "stolen|files are encrypted|files encrypted|ransomware|kill my access|been down|is offline|are offline|has been out|through her ceiling|through the ceiling|through my ceiling|won't wake up|chest pains|error page|is broken since|broken since|can't pay|nobody can check out|no one can check out|losing orders|losing money|losing sales|losing customers|throwing errors|are failing|payments are failing|is failing|returning 500*|hurt his|hurt her|fell in|fell from|fell off|roll it back now|taken to hospital|taken to the hospital|in the emergency|water is running|burst pipe|is overheating|lost power|can't breathe|has been admitted|we can't ship|can't process any|stuck in the lift|stuck in the elevator|is down|went down|are down|has gone down|not responding|production is|prod is|can't log in|cannot log in|leaking|water is coming|on fire|flooded|flooding|injured|emergency room|passed out|was stolen|been stolen|power is out|no power|sev1|sev-1|sev 1|major incident|has a fever|had a fall|fell and|bleeding|gas smell|all orders are failing|customers can't|customers cannot|users can't|users cannot",
    ),
    (
        Calm,
        "no need to|need not decide|nothing to decide|no rush|no hurry|not urgent|isn't urgent|nothing urgent|no urgency|whenever you|when you have time|when you have a moment|when you get a chance|when you get a moment|when you find time|in your own time|take your time|at your convenience|at your leisure|at your own pace|no action needed|no action required|no action is needed|no action is required|no further action|no need to reply|no need to respond|no reply needed|no response needed|nothing to do|nothing you need to do|nothing needed from you|no need to do anything|don't need to do anything|do not need to do anything|no deadline|for your information|fyi|just so you know|sometime next week|some time next week|any time before|anytime before|any time this month|when it suits|can wait|not pressing|low priority|for your records|no need to call|no pressure|next month is fine|next week is fine",
    ),
    (
        Request,
        "i need|we need|need an answer|need a yes|i have no spare|someone has to|somebody has to|do you authorise|do you authorize|yes or no|go ahead?|or wait|want me to|ok to|okay to|happy for me to|could you|can you|would you|will you|please|pls|would you mind|i need you|need you to|need your|needs your|let me know|get back to me|could i ask|may i ask|can i ask|do you have|do you know|are you able|waiting for your|awaiting your|your approval|your signature|your feedback|your thoughts|your input|your ok|your sign-off|your decision|what do you think|wdyt|any thoughts|kindly|respond by|reply by|rsvp|tell me|send me|help me|i'd appreciate|would appreciate|i'd be grateful|grateful if|should i|shall i|do you want|did you|have you|are you ok with|are you okay with|are you happy with|can i get|could i get|can we get|could we get|any chance you|wondering if|i was wondering|what did you|call me|ring me|give me a call|acknowledge|confirm by|action required|action needed|response required|approve|sign and return|sign the|we need to hear|looking forward to your reply|hear from you|how do you|how would you|which of|remember to|make sure you|don't forget to",
    ),
    (
        Formula,
        "please do not reply|please don't reply|do not reply to this|if you have any questions|if you have questions|any questions, please|please contact us|please contact our|contact customer|please visit|please find attached|please see attached|please note|please be advised|please keep this|please retain|please disregard|please ignore|if you did not|if you didn't|please consider the environment|please allow|to view this|please click here to unsubscribe|please unsubscribe|need help?|have questions?|questions?|how did we do|rate your|please rate|leave a review|tell us what you think|don't recognize|do not recognize|didn't request|did not request|wasn't you|was not you|not you?|never share|please add us|trouble viewing|can't see|how can we help|thank you for|thanks for|looking for something|ready to|want to learn more|want more|did you know|have you tried|have you seen|have you heard",
    ),
    (
        Scheduling,
        "when are you free|when are you around|when are you available|minute call|minutes call|set up a 20|an intro call|set up a short|are you free|are you available|you be available|you be free|you're free|you are free|you're available|your availability|my availability|when works|what time works|what works for you|which time|work for you|works for you|work for your|suit you|suits you|suits your|reschedul*|move our|move the meeting|move the call|move tomorrow's|move today's|move our call|push our|push the meeting|push back our|push it to|postpone*|schedule a call|schedule a meeting|schedule a time|schedule some time|schedule time|schedule our|schedule the|scheduling|set up a call|set up a meeting|set up a time|set up some time|set a time|find a time|find some time|find time|time slot|time slots|pick a time|pick a slot|book a time|book a slot|book some time|calendar invite|can we meet|could we meet|shall we meet|should we meet|let's meet|like to meet|love to meet|meet up|meet on|meet for|want to meet|hop on a call|jump on a call|get on a call|have a quick call|quick call|a call on|free for a call|free for lunch|free for coffee|grab coffee|grab a coffee|grab lunch|have lunch|lunch on|lunch next|dinner on|catch up next|catch up on|cancel our|cancel the meeting|bring forward|bring our|pencil in|new time|proposed time*|alternative time*|another time|different time|earlier slot|later slot|doodle|swap our|shift our|move it to|moved to|meet next|meet this|meeting invitation|invitation to interview|interview time*|interview slot*",
    ),
    (
        Transactional,
        "your order|order confirmation|order confirmed|order number|order no|has shipped|have shipped|has been shipped|on its way|out for delivery|has been delivered|was delivered|were delivered|tracking number|track your package|payment received|payment confirmation|payment successful|payment was successful|payment has been received|received your payment|thank you for your payment|thank you for your order|thanks for your order|thank you for your purchase|thanks for your purchase|thank you for shopping|your receipt|receipt for|receipt from|e-receipt|booking confirmation|booking confirmed|booking is confirmed|reservation confirmed|reservation is confirmed|reservation confirmation|appointment is confirmed|appointment confirmed|your booking|your itinerary|e-ticket|eticket|boarding pass|statement is ready|statement is now|statement is available|statement available|monthly statement|account statement|e-statement|has been credited|has been debited|has been charged|was charged|you paid|you sent|you received|refund has been|your refund|refund of|direct deposit|payslip|pay slip|pay stub|subscription renewed|has been renewed|was renewed|will renew automatically|has been processed|was processed|successfully processed|transaction alert|confirmation number|your tickets|your package|your parcel|your delivery|parcel has|package has|backup completed|backup succeeded|backup finished|build passed|build succeeded|completed successfully|deployed successfully|deployment succeeded|was successful|autopay|automatic payment|transfer completed|transfer complete|transfer has been|total charged|amount paid|invoice paid|paid in full|registration confirmed|registration is confirmed|your registration|has accepted|has declined this invitation|accepted:|we have received your|we've received your|application received|ready for pickup|ready for collection|check-in complete|return received|donation receipt|proof of purchase|thank you for your donation|export is ready|report is ready|meter reading",
    ),
    (
        Failure,
        "failed|failure|undeliverable|undelivered|could not be delivered|couldn't be delivered|couldn't deliver|returned mail|delivery status notification|was declined|been declined|card declined|payment declined|could not be processed|couldn't process|could not process|unable to process|unsuccessful|overdue|past due|outstanding balance|outstanding invoice|final notice|payment reminder|second reminder|build is broken|error rate|expired certificate|certificate expires|quota exceeded|storage is full|almost full|disk is full|suspended|insufficient funds|bounced|unpaid|not been paid|late fee|is broken|timed out|aborted|rolled back|did not complete",
    ),
    (
        Code,
        "authentication number|reset code|use the code|verification number|confirmation digits|access number|verification code|security code|login code|log-in code|sign-in code|sign in code|signin code|one-time code|one time code|one-time password|one time password|one-time passcode|single-use code|otp|passcode|authentication code|confirmation code|access code|2fa code|two-factor code|your code is|code is|use this code|enter this code|enter the code|enter code|pin code|verify code",
    ),
    (Reset, "reset your password|password reset|reset password|magic link|sign-in link|login link|log-in link"),
    (
        Promo,
        "free guide|download our|join 4|save your spot|you'll love|listen now|pre-approved|apply in minutes|apply now|because you liked|0% for|start your trial|join thousands|book your|grab yours|only a few left|treat yourself|gift ideas|our favourites|our favorites|half off|act now|flights from|try it today|your next escape|see where you|hours left|what we shipped|dark mode|from the shop|the edit|picks are here|weekend picks|free shipping|code dies|trending|don't wait|ends sunday|ends at midnight|your cart|complete your purchase|left something behind|back in stock|price drop|sneak peek|book your|special for you|% off|sale|discount|discounts|save up to|save big|deals|special offer|exclusive offer|our offer|offers|coupon|promo code|use code|voucher|free shipping|free delivery|shop now|shop the|buy now|order now|limited time|limited-time|last chance|don't miss|exclusive|exclusives|black friday|cyber monday|new arrivals|new collection|new in|just dropped|just landed|bestseller*|best seller*|clearance|flash sale|register now|sign up today|sign up now|upgrade now|upgrade to|free trial|webinar|giveaway|win a|earn points|bonus points|loyalty|members only|starting at|from only|gift guide|recommended for you|picked for you|you may also like|introducing|save your seat|reserve your seat|early bird|hours only|ends tonight|ends soon|while supplies last|while stocks last|treat yourself|must-have*|limited edition|book now|claim your|unlock|get yours|special price|half price|lowest price*|best price*|new season|the perfect gift|trending now|boost your|grow your business|case study|demo today|book a demo",
    ),
    (
        Newsletter,
        "on the blog|read online|what you need to know|this week's top|product update*|good morning. here|habits of|newsletter|weekly digest|daily digest|your digest|this week in|monthly update|in this issue|in this edition|this month's|this week's|top stories|view in browser|view this email|view online|latest from|round-up|roundup|new on the blog|our latest|what's new|read more|read the full|editor's pick*|our favourite|our favorite|issue #|inspiration|upcoming events|recipe*|tips",
    ),
    (
        Unsubscribe,
        "unsubscribe|opt out|opt-out|manage your preferences|email preferences|manage preferences|update your preferences|update preferences|you are receiving this|you're receiving this|you receive this|because you subscribed|because you signed up|because you opted|stop receiving|mailing preferences|communication preferences",
    ),
    (
        By,
        "by|before|until|till|no later than|not later than|at the latest|due|due by|due on|ahead of|needs to be in by|closes|closes at|close at|cut-off|cutoff|expires",
    ),
    (
        Due,
        "deadline|due|due date|due by|is due|expires|expiry|cut-off|cutoff|closing date|last day to|final day to|must be received",
    ),
    (Within, "in|within|in the next|within the next|over the next"),
    (Day(0), "today|tonight|this morning|this afternoon|this evening|the end of today"),
    (Day(1), "tomorrow|tmrw|tomorrow's"),
    (Day(2), "day after tomorrow"),
    (Hour(10), "this morning"),
    (Hour(18), "eod|end of day|end of the day|close of business|cob|end of business|end of play|the end of today"),
    (Hour(17), "this afternoon|tomorrow afternoon"),
    (Hour(21), "tonight|this evening|tomorrow evening"),
    (Hour(12), "by lunch|before lunch|by lunchtime|before lunchtime|until lunch|noon|midday|tomorrow morning"),
    (Hour(23), "midnight"),
    (Weekday(1), "monday"),
    (Weekday(2), "tuesday|tues"),
    (Weekday(3), "wednesday"),
    (Weekday(4), "thursday|thurs"),
    (Weekday(5), "friday"),
    (Weekday(6), "saturday"),
    (Weekday(7), "sunday"),
    (NextWeek, "next week"),
    (ThisWeek, "this week|end of the week|end of week|eow"),
    (ThisMonth, "this month|end of the month|end of month|month end"),
    (Month(1), "january|jan"),
    (Month(2), "february|feb"),
    (Month(3), "march|mar"),
    (Month(4), "april|apr"),
    (Month(5), "may"),
    (Month(6), "june|jun"),
    (Month(7), "july|jul"),
    (Month(8), "august|aug"),
    (Month(9), "september|sept|sep"),
    (Month(10), "october|oct"),
    (Month(11), "november|nov"),
    (Month(12), "december|dec"),
    (Am, "am"),
    (Pm, "pm"),
    (Minutes(1), "minute|minutes|min|mins"),
    (Minutes(60), "hour|hours|hrs|hr"),
    (Minutes(1440), "day|days"),
    (Minutes(10080), "week|weeks"),
    (Number(1), "an|one|the next|the"),
    (Number(2), "two|couple of|a couple of"),
    (Number(3), "three"),
    (Number(4), "four"),
    (Number(5), "five"),
    (Number(6), "six"),
    (Number(7), "seven"),
    (Number(8), "eight"),
    (Number(9), "nine"),
    (Number(10), "ten"),
    (Number(11), "eleven"),
    (Number(12), "twelve"),
    (Machine, "automated message|automatically generated|automatic message|this is an automated|do not reply to this"),
];
