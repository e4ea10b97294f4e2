// What every script in Thunderbird's window begins with. Scripts are the body
// of an async function; its value goes back, an exception as `ERR …`.
const done = arguments[arguments.length - 1];
const args = arguments;
const { MailServices } = ChromeUtils.importESModule("resource:///modules/MailServices.sys.mjs");
const server = MailServices.accounts.allServers.find((s) => s.type == "imap");
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const until = async (what, ask) => {
  for (let i = 0; i < 1200; i++) {
    let answer;
    try {
      answer = await ask();
    } catch (e) {}
    if (answer) return answer;
    await sleep(25);
  }
  throw "waited in vain for " + what;
};
const folder = (path) => server.rootFolder.descendants.find((f) => f.URI.endsWith("@localhost/" + path));
const pane = () => document.getElementById("tabmail").currentAbout3Pane;
const headers = () => {
  const view = pane().gDBView;
  return [...Array(view.rowCount).keys()].map((i) => view.getMsgHdrAt(i));
};
const row = (subject) => headers().findIndex((h) => h.mime2DecodedSubject == subject);
const show = async (path) => {
  const wanted = await until(path, () => folder(path));
  await until(path + " to be shown", () => {
    pane().displayFolder(wanted.URI);
    return pane().gFolder === wanted && pane().gDBView;
  });
  wanted.updateFolder(window.msgWindow);
};
const list = () =>
  headers().map((h) => ({
    subject: h.mime2DecodedSubject,
    uid: h.messageKey,
    id: h.messageId,
    read: h.isRead,
    size: h.messageSize,
    keywords: h.getStringProperty("keywords"),
  }));
const source = (header) =>
  new Promise((finished, failed) => {
    const uri = header.folder.getUriForMsg(header);
    let text = "";
    const listener = {
      QueryInterface: ChromeUtils.generateQI(["nsIStreamListener"]),
      onStartRequest() {},
      // Its own store puts fields of its own before the message.
      onStopRequest: (_, status) =>
        status ? failed("status " + status) : finished(text.replace(/^(X-Mozilla-[^\n]*\n)+/, "")),
      onDataAvailable(_, stream, offset, count) {
        const binary = Cc["@mozilla.org/binaryinputstream;1"].createInstance(Ci.nsIBinaryInputStream);
        binary.setInputStream(stream);
        text += binary.readBytes(count);
      },
    };
    MailServices.messageServiceFromURI(uri).streamMessage(uri, listener, null, null, false, "", false);
  });
// Where something is on the screen: its left edge and its middle.
const place = (element) => {
  const frame = pane().frameElement.getBoundingClientRect();
  const r = element.getBoundingClientRect();
  return [window.mozInnerScreenX + frame.x + r.x, window.mozInnerScreenY + frame.y + r.y + r.height / 2].map(Math.round);
};
