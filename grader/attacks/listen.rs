// family: network
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    match std::net::TcpListener::bind("127.0.0.1:0") {
        Ok(_) => panic!("escaped"),
        Err(error) => panic!("held: {error}"),
    }
}
