//! The submission client. To come.
