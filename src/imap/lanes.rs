//! Which mailbox shows which lane, and what our mailboxes are called.
//!
//! Promises: names follow the provider's hierarchy delimiter and personal
//! prefix (RFC 2342); a lane always has exactly one mailbox. Doesn't know:
//! what stands in them.

use crate::lane::{LANES, Lane, LanePreset};

/// Between `Lanes` and its mailboxes where the provider has no hierarchy.
pub const DEFAULT_DELIMITER: char = '/';

/// One of our mailboxes, independent of what the provider's names look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// INBOX: what no other lane mailbox took.
    Inbox,
    /// `Lanes/Push`.
    Push,
    /// `Lanes/Meeting`.
    Meeting,
    /// `Lanes/Queue`.
    Queue,
    /// `Lanes/Info`.
    Info,
    /// `Lanes/Silent`.
    Silent,
    /// `Lanes/All`: everything.
    All,
}

impl Place {
    fn of(lane: Lane) -> Place {
        match lane {
            Lane::Push => Place::Push,
            Lane::Meeting => Place::Meeting,
            Lane::Queue => Place::Queue,
            Lane::Info => Place::Info,
            Lane::Silent => Place::Silent,
        }
    }

    /// The lane that a mailbox stands for; `None` for INBOX and `Lanes/All`.
    pub fn lane(self) -> Option<Lane> {
        match self {
            Place::Push => Some(Lane::Push),
            Place::Meeting => Some(Lane::Meeting),
            Place::Queue => Some(Lane::Queue),
            Place::Info => Some(Lane::Info),
            Place::Silent => Some(Lane::Silent),
            Place::Inbox | Place::All => None,
        }
    }

    fn leaf(self) -> &'static str {
        match self {
            Place::Inbox => "INBOX",
            Place::Push => "Push",
            Place::Meeting => "Meeting",
            Place::Queue => "Queue",
            Place::Info => "Info",
            Place::Silent => "Silent",
            Place::All => "All",
        }
    }

    /// A fixed octet for keys of the store; never change one.
    pub fn code(self) -> u8 {
        match self {
            Place::Inbox => b'i',
            Place::Push => b'p',
            Place::Meeting => b'm',
            Place::Queue => b'q',
            Place::Info => b'n',
            Place::Silent => b's',
            Place::All => b'a',
        }
    }
}

/// The mailboxes of one account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneMap {
    preset: LanePreset,
    delimiter: char,
    prefix: String,
}

impl LaneMap {
    /// A map for a provider whose delimiter and personal prefix are known.
    pub fn new(preset: LanePreset, delimiter: char, prefix: &str) -> LaneMap {
        LaneMap { preset, delimiter, prefix: prefix.to_owned() }
    }

    /// Where a lane is shown.
    pub fn place(&self, lane: Lane) -> Place {
        let apart: &[Lane] = match self.preset {
            LanePreset::Calm => &[Lane::Info, Lane::Silent],
            LanePreset::Focus => &[Lane::Queue, Lane::Info, Lane::Silent],
            LanePreset::Folders => &LANES,
            LanePreset::Shadow => &[],
        };
        if apart.contains(&lane) { Place::of(lane) } else { Place::Inbox }
    }

    /// The lane that a person means who puts a message into a mailbox: of the
    /// lanes that share INBOX it is the calm one. `None`: no lane.
    pub fn lane_of(&self, place: Place) -> Option<Lane> {
        let shared = place == Place::Inbox && self.place(Lane::Queue) == Place::Inbox;
        if shared { Some(Lane::Queue) } else { place.lane() }
    }

    /// Whether several lanes share the mailbox, so that keywords tell them apart.
    pub fn shared(&self, place: Place) -> bool {
        LANES.iter().filter(|l| self.place(**l) == place).count() > 1
    }

    /// Every mailbox of ours: INBOX first, `Lanes/All` last.
    pub fn places(&self) -> Vec<Place> {
        let mut out = vec![Place::Inbox];
        out.extend(LANES.iter().map(|l| self.place(*l)).filter(|p| *p != Place::Inbox));
        out.push(Place::All);
        out
    }

    /// The parent mailbox, `\Noselect`.
    pub fn parent(&self) -> String {
        format!("{}Lanes", self.prefix)
    }

    /// The provider's mailbox beneath which ours lie, such as INBOX.
    pub fn root(&self) -> Option<&str> {
        self.prefix.strip_suffix(self.delimiter).filter(|root| !root.is_empty())
    }

    /// Whether a name is that of the [root](Self::root).
    pub fn is_root(&self, name: &[u8]) -> bool {
        self.root().is_some_and(|root| {
            let inbox = root.eq_ignore_ascii_case("INBOX");
            root.as_bytes() == name || (inbox && name.eq_ignore_ascii_case(b"INBOX"))
        })
    }

    /// The hierarchy delimiter.
    pub fn delimiter(&self) -> char {
        self.delimiter
    }

    /// The name that clients see.
    pub fn name(&self, place: Place) -> String {
        match place {
            Place::Inbox => "INBOX".to_owned(),
            other => format!("{}{}{}", self.parent(), self.delimiter, other.leaf()),
        }
    }

    /// What a name that a client sent means. INBOX is matched without case
    /// (RFC 9051 §5.1), the others exactly.
    pub fn find(&self, name: &[u8]) -> Option<Place> {
        if name.eq_ignore_ascii_case(b"INBOX") {
            return Some(Place::Inbox);
        }
        self.places().into_iter().find(|p| *p != Place::Inbox && self.name(*p).as_bytes() == name)
    }

    /// Whether a name is ours or lies beneath what is ours: CREATE, DELETE
    /// and RENAME of it answer NO [CANNOT]. Compared without case, so that no
    /// look-alike of ours can be made.
    pub fn owns(&self, name: &[u8]) -> bool {
        let parent = self.parent();
        let (len, lower) = (parent.len(), name.to_ascii_lowercase());
        let parent = parent.to_ascii_lowercase();
        lower == parent.as_bytes()
            || (lower.starts_with(parent.as_bytes()) && lower.get(len) == Some(&(self.delimiter as u8)))
    }
}

/// Matches a mailbox name against a LIST pattern (RFC 9051 §6.3.9): `*`
/// matches all, `%` all but the delimiter. Time is bounded by name × pattern.
pub fn matches(pattern: &[u8], name: &[u8], delimiter: u8) -> bool {
    let mut row: Vec<bool> = vec![false; name.len() + 1];
    row[0] = true;
    for p in pattern {
        match p {
            b'*' | b'%' => {
                for i in 1..=name.len() {
                    row[i] = row[i] || (row[i - 1] && (*p == b'*' || name[i - 1] != delimiter));
                }
            }
            c => {
                for i in (1..=name.len()).rev() {
                    row[i] = row[i - 1] && name[i - 1] == *c;
                }
                row[0] = false;
            }
        }
    }
    row[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_has_a_mailbox_in_every_preset() {
        for preset in [LanePreset::Calm, LanePreset::Focus, LanePreset::Folders, LanePreset::Shadow] {
            let map = LaneMap::new(preset, '/', "");
            for lane in LANES {
                assert!(map.places().contains(&map.place(lane)));
            }
        }
    }

    #[test]
    fn putting_a_message_into_inbox_means_queue_only_where_queue_is_shown_there() {
        assert_eq!(LaneMap::new(LanePreset::Calm, '/', "").lane_of(Place::Inbox), Some(Lane::Queue));
        assert_eq!(LaneMap::new(LanePreset::Folders, '/', "").lane_of(Place::Inbox), None);
        assert_eq!(LaneMap::new(LanePreset::Folders, '/', "").lane_of(Place::Silent), Some(Lane::Silent));
    }

    #[test]
    fn names_follow_the_delimiter_and_prefix() {
        let map = LaneMap::new(LanePreset::Calm, '.', "INBOX.");
        assert_eq!(map.name(Place::Silent), "INBOX.Lanes.Silent");
        assert_eq!(map.find(b"INBOX.Lanes.Silent"), Some(Place::Silent));
        assert_eq!(map.find(b"inbox"), Some(Place::Inbox));
        assert_eq!(map.find(b"INBOX.Lanes.Push"), None);
        assert!(map.owns(b"INBOX.lanes.other") && !map.owns(b"INBOX.Lanesx"));
        assert!(map.is_root(b"Inbox") && !map.is_root(b"INBOX.Lanes"));
        assert_eq!(LaneMap::new(LanePreset::Calm, '/', "").root(), None);
    }

    #[test]
    fn patterns_match_as_list_says() {
        assert!(matches(b"*", b"Lanes/All", b'/'));
        assert!(!matches(b"%", b"Lanes/All", b'/'));
        assert!(matches(b"Lanes/%", b"Lanes/All", b'/'));
        assert!(matches(b"%/%", b"Lanes/All", b'/'));
        assert!(matches(b"L*l", b"Lanes/All", b'/'));
        assert!(!matches(b"lanes", b"Lanes", b'/'));
        assert!(matches(b"", b"", b'/'));
    }
}
