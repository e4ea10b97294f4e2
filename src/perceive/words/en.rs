//! English.

use super::{Class::*, Row};

pub(super) const WORDS: &[Row] = &[
    (
        Urgent,
        "urgent|urgently|asap|as soon as possible|as soon as you can|immediately|right away|emergency|time-sensitive|time sensitive|at once|without delay|cannot wait|can't wait|drop everything|straight away|straightaway|this minute|immediate attention",
    ),
    (
        Live,
        "on the line|on the phone with|waiting for you|waiting on you|waiting outside|i'm outside|i am outside|in the lobby|at the door|at reception|is here now|are here now|right now|call me|ring me|give me a call|phone me|call back|call my|call us now|pick up your phone|are you there|are you around|you there?|where are you|blocked on you|stuck until you|can't start without|can't continue without|on hold with|closes today|doors close|leaves in|boarding|starting now|starts in|just started|we are live|we're live|come get|come and get|pick him up|pick her up|pick them up|collect him|collect her|standing here|standing outside|locked out|can't get in|cannot get in",
    ),
    (
        Incident,
        "is down|went down|are down|has gone down|outage|not responding|production is|prod is|can't log in|cannot log in|data loss|data breach|compromised|leaking|water is coming|on fire|flooded|flooding|hospital|accident|ambulance|injured|emergency room|passed out|was stolen|been stolen|power is out|no power|crashed|sev1|sev-1|sev 1|major incident|unreachable|stopped working|has a fever|had a fall|fell and|bleeding|broke down|smoke|gas smell|all orders are failing|checkout is|customers can't|customers cannot|users can't|users cannot",
    ),
    (
        Calm,
        "no rush|no hurry|not urgent|isn't urgent|nothing urgent|no urgency|whenever you|when you have time|when you have a moment|when you get a chance|when you get a moment|when you find time|in your own time|take your time|at your convenience|at your leisure|at your own pace|no action needed|no action required|no action is needed|no action is required|no further action|no need to reply|no need to respond|no reply needed|no response needed|nothing to do|nothing you need to do|nothing needed from you|no need to do anything|don't need to do anything|do not need to do anything|no deadline|for your information|fyi|just so you know|sometime next week|some time next week|any time before|anytime before|any time this month|when it suits|can wait|not pressing|low priority|for your records|no need to call|no pressure|next month is fine|next week is fine",
    ),
    (
        Request,
        "could you|can you|would you|will you|please|pls|would you mind|i need you|need you to|need your|needs your|let me know|get back to me|could i ask|may i ask|can i ask|do you have|do you know|are you able|waiting for your|awaiting your|your approval|your signature|your feedback|your thoughts|your input|your ok|your sign-off|your decision|what do you think|wdyt|any thoughts|kindly|respond by|reply by|rsvp|tell me|send me|help me|i'd appreciate|would appreciate|i'd be grateful|grateful if|should i|shall i|do you want|did you|have you|are you ok with|are you okay with|are you happy with|can i get|could i get|can we get|could we get|any chance you|wondering if|i was wondering|what did you|call me|ring me|give me a call|acknowledge|confirm by|action required|action needed|response required|approve|sign and return|sign the|we need to hear|looking forward to your reply|hear from you|how do you|how would you|which of|remember to|make sure you|don't forget to",
    ),
    (
        Formula,
        "please do not reply|please don't reply|do not reply to this|if you have any questions|if you have questions|any questions, please|please contact us|please contact our|contact customer|please visit|please find attached|please see attached|please note|please be advised|please keep this|please retain|please disregard|please ignore|if you did not|if you didn't|please consider the environment|please allow|to view this|please click here to unsubscribe|please unsubscribe|need help?|have questions?|questions?|how did we do|rate your|please rate|leave a review|tell us what you think|don't recognize|do not recognize|didn't request|did not request|wasn't you|was not you|not you?|never share|please add us|trouble viewing|can't see|how can we help|thank you for|thanks for|looking for something|ready to|want to learn more|want more|did you know|have you tried|have you seen|have you heard",
    ),
    (
        Scheduling,
        "are you free|are you available|you be available|you be free|you're free|you are free|you're available|your availability|my availability|when are you|when works|what time works|what works for you|which time|work for you|works for you|work for your|suit you|suits you|suits your|reschedul*|move our|move the meeting|move the call|move tomorrow's|move today's|move our call|push our|push the meeting|push back our|push it to|postpone*|schedule a call|schedule a meeting|schedule a time|schedule some time|schedule time|schedule our|schedule the|scheduling|set up a call|set up a meeting|set up a time|set up some time|set a time|find a time|find some time|find time|time slot|time slots|pick a time|pick a slot|book a time|book a slot|book some time|calendar invite|can we meet|could we meet|shall we meet|should we meet|let's meet|like to meet|love to meet|meet up|meet on|meet for|want to meet|hop on a call|jump on a call|get on a call|have a quick call|quick call|a call on|free for a call|free for lunch|free for coffee|grab coffee|grab a coffee|grab lunch|have lunch|lunch on|lunch next|dinner on|catch up next|catch up on|cancel our|cancel the meeting|bring forward|bring our|pencil in|new time|proposed time*|alternative time*|another time|different time|earlier slot|later slot|doodle|swap our|shift our|move it to|moved to|meet next|meet this|meeting invitation|invitation to interview|interview time*|interview slot*",
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
        "verification code|security code|login code|log-in code|sign-in code|sign in code|signin code|one-time code|one time code|one-time password|one time password|one-time passcode|single-use code|otp|passcode|authentication code|confirmation code|access code|2fa code|two-factor code|your code is|code is|use this code|enter this code|enter the code|enter code|pin code|verify code",
    ),
    (Reset, "reset your password|password reset|reset password|magic link|sign-in link|login link|log-in link"),
    (
        Promo,
        "% off|sale|discount|discounts|save up to|save big|deals|special offer|exclusive offer|our offer|offers|coupon|promo code|use code|voucher|free shipping|free delivery|shop now|shop the|buy now|order now|limited time|limited-time|last chance|don't miss|exclusive|exclusives|black friday|cyber monday|new arrivals|new collection|new in|just dropped|just landed|bestseller*|best seller*|clearance|flash sale|register now|sign up today|sign up now|upgrade now|upgrade to|free trial|webinar|giveaway|win a|earn points|bonus points|loyalty|members only|starting at|from only|gift guide|recommended for you|picked for you|you may also like|introducing|save your seat|reserve your seat|early bird|hours only|ends tonight|ends soon|while supplies last|while stocks last|treat yourself|must-have*|limited edition|book now|claim your|unlock|get yours|special price|half price|lowest price*|best price*|new season|the perfect gift|trending now|boost your|grow your business|case study|demo today|book a demo",
    ),
    (
        Newsletter,
        "newsletter|weekly digest|daily digest|your digest|this week in|monthly update|in this issue|in this edition|this month's|this week's|top stories|view in browser|view this email|view online|latest from|round-up|roundup|new on the blog|our latest|what's new|read more|read the full|editor's pick*|our favourite|our favorite|issue #|inspiration|upcoming events|recipe*|tips",
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
    (Hour(12), "noon|midday|lunch|lunchtime|tomorrow morning"),
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
];
