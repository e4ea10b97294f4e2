use crate::clients_of;
use crate::common::world::World;
use crate::corpus::hard;

#[test]
#[ignore = "interactive"]
fn stand() {
    let world = World::start();
    for mail in hard(&world.alice.address) {
        world.dovecot.deliver("alice", "ann@example.com", &mail.octets);
    }
    let t = clients_of::through(&world);
    let d = clients_of::direct(&world, "alice");
    let text = format!(
        "IMAPS={}\nIMAP={}\nSMTP={}\nWEB={}\nUSER={}\nKEY={}\nAGENT={}\nCERT={}\nDIMAPS={}\nDIMAP={}\nDCERT={}\nSCRATCH={}\nDROOT={}\n",
        t.imaps,
        world.gateway.imap,
        world.gateway.smtp,
        world.gateway.web,
        t.user,
        t.password,
        world.alice.agent,
        t.trusts.display(),
        d.imaps,
        world.dovecot.imap,
        d.trusts.display(),
        world.gateway.scratch.path().display(),
        world.dovecot.authority.ca.parent().unwrap().display()
    );
    std::fs::write("/tmp/stand.env", text).unwrap();
    while !std::path::Path::new("/tmp/stand.stop").exists() {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
