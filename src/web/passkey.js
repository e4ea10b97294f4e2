// The one script of these pages: asks the browser for a passkey and puts its
// answer into the form that asked. It reads nothing but the form's own
// attributes, loads nothing, and writes text, never markup.
(() => {
  "use strict";

  const octets = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const text = (buffer) =>
    btoa(Array.from(new Uint8Array(buffer), (o) => String.fromCharCode(o)).join(""))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const sha256 = async (data) => new Uint8Array(await crypto.subtle.digest("SHA-256", data));
  const joined = (...parts) => new Uint8Array(parts.flatMap((part) => Array.from(part)));
  const ascii = (words) => new TextEncoder().encode(words);
  const descriptors = (list) =>
    (list || "").split(" ").filter((id) => id).map((id) => ({ type: "public-key", id: octets(id) }));

  async function sign(form, challenge) {
    const credential = await navigator.credentials.get({
      publicKey: {
        challenge,
        rpId: form.dataset.rp,
        allowCredentials: descriptors(form.dataset.allow),
        userVerification: "required",
        timeout: 120000,
      },
    });
    form.elements.assertion.value = JSON.stringify({
      credential: text(credential.rawId),
      authenticator_data: text(credential.response.authenticatorData),
      client_data: text(credential.response.clientDataJSON),
      signature: text(credential.response.signature),
    });
  }

  async function create(form) {
    const challenge = octets(form.dataset.challenge);
    const account = form.dataset.account || form.elements.account.value.trim();
    const credential = await navigator.credentials.create({
      publicKey: {
        challenge,
        rp: { id: form.dataset.rp, name: "Tollgate" },
        user: { id: await sha256(ascii("tollgate:" + account)), name: account, displayName: account },
        pubKeyCredParams: [{ type: "public-key", alg: -7 }, { type: "public-key", alg: -8 }],
        excludeCredentials: descriptors(form.dataset.exclude),
        authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
        attestation: "none",
        timeout: 120000,
      },
    });
    form.elements.client_data.value = text(credential.response.clientDataJSON);
    form.elements.attestation.value = text(credential.response.attestationObject);
    if (form.elements.assertion) {
      // What is vouched for is this registration and no other.
      const made = await sha256(credential.response.attestationObject);
      await sign(form, await sha256(joined(ascii("tollgate/webauthn/add/v1\n"), challenge, made)));
    }
  }

  const reasons = {
    NotAllowedError: "The passkey was not used: it was cancelled, took too long, or did not verify you.",
    InvalidStateError: "This passkey is registered already.",
    NotSupportedError: "This device has no passkey of a kind that is taken here.",
    SecurityError: "This page's address can't use passkeys.",
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const button = form.querySelector("button");
    const said = form.querySelector("[role=alert]");
    button.disabled = !window.PublicKeyCredential;
    if (button.disabled) said.textContent = "This browser has no passkeys.";
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      said.textContent = "";
      try {
        if (form.dataset.passkey === "create") await create(form);
        else await sign(form, octets(form.dataset.challenge));
        form.submit();
      } catch (error) {
        said.textContent = (reasons[error.name] || "The passkey failed: " + error.name + ".") + " Nothing was sent.";
        button.disabled = false;
      }
    });
  }
})();
