//! The gateway before other people's mail servers: Dovecot, Cyrus and Courier
//! answer the same checks, with and without what they can leave out.
//!
//! Each test starts its own server in a private folder. `tests/run` installs
//! what they need.

#[path = "../common/mod.rs"]
mod common;

mod courier;
mod cyrus;
mod entering;
mod leaving;
mod listing;
mod outbox;
mod provider;
mod views;

/// The same checks against one provider.
macro_rules! against {
    ($module:ident, $kind:ident) => {
        mod $module {
            use crate::provider::{Kind, World};

            #[test]
            fn people_and_agents_sign_in_and_nobody_else() {
                crate::listing::signing_in(&World::start(Kind::$kind));
            }

            #[test]
            fn lanes_are_listed_as_the_provider_names_its_mailboxes() {
                crate::listing::names(&World::start(Kind::$kind));
            }

            #[test]
            fn lanes_are_found_beneath_an_inbox_that_has_nothing_else() {
                crate::listing::alone(&World::start(Kind::$kind));
            }

            #[test]
            fn a_mailbox_that_the_lanes_would_hide_is_refused_at_start() {
                crate::listing::collisions(&mut World::start(Kind::$kind));
            }

            #[test]
            fn mailboxes_are_made_renamed_and_deleted_at_the_provider_and_lanes_are_not() {
                crate::listing::managing(&World::start(Kind::$kind));
            }

            #[test]
            fn delivered_mail_is_in_its_lane_with_stamps_sizes_and_sections_that_agree() {
                crate::views::arriving(&World::start(Kind::$kind));
            }

            #[test]
            fn flags_and_keywords_are_the_provider_s() {
                crate::views::flags(&World::start(Kind::$kind));
            }

            #[test]
            fn views_and_the_provider_find_the_same() {
                crate::views::searching(&World::start(Kind::$kind));
            }

            #[test]
            fn what_another_client_does_at_the_provider_is_noticed() {
                crate::views::others_at_work(&World::start(Kind::$kind));
            }

            #[test]
            fn corrections_are_views_only_and_switching_off_leaves_the_mailbox_as_it_was() {
                crate::leaving::switched_off(World::start(Kind::$kind));
            }

            #[test]
            fn keywords_that_tell_lanes_apart_stay_here() {
                crate::leaving::shared_lanes(World::with_preset(Kind::$kind, "calm"));
            }

            #[test]
            fn expunge_takes_only_what_this_view_shows() {
                crate::leaving::expunging(&World::start(Kind::$kind));
            }

            #[test]
            fn messages_leave_lanes_for_the_provider_s_mailboxes() {
                crate::leaving::filing(&World::start(Kind::$kind));
            }

            #[test]
            fn messages_enter_lanes_from_the_provider_s_mailboxes() {
                crate::entering::moving(&World::start(Kind::$kind));
            }

            #[test]
            fn appended_messages_are_in_the_mailbox_named() {
                crate::entering::appending(&World::start(Kind::$kind));
            }

            #[test]
            fn many_at_once_go_where_each_belongs() {
                crate::entering::many(&World::start(Kind::$kind));
            }

            #[test]
            fn passed_through_mailboxes_are_the_provider_s_to_the_octet() {
                crate::entering::passed_through(&World::start(Kind::$kind));
            }

            #[test]
            fn an_agent_reads_and_changes_nothing_but_drafts() {
                crate::entering::agents(&World::start(Kind::$kind));
            }
        }
    };
}

against!(dovecot_full, Dovecot);
against!(cyrus_full, Cyrus);
against!(cyrus_bare, CyrusBare);
against!(courier_full, Courier);
against!(courier_bare, CourierBare);
