// family: network
// expect: panicked
// says: held

use ptx::prelude::*;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

pub fn kernel(_: &mut Cta, _: &Gemm) {
    // It has no place in the file system, so no mount hides it.
    let address = SocketAddr::from_abstract_name(b"hand-in").expect("an address");
    assert!(UnixListener::bind_addr(&address).is_err() && UnixStream::connect_addr(&address).is_err(), "escaped");
    panic!("held")
}
