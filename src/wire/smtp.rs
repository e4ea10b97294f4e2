//! SMTP framing. To come.
