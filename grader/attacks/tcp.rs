// family: network
// expect: panicked
// says: held

use ptx::prelude::*;

pub fn kernel(_: &mut Cta, _: &Gemm) {
    let address = std::net::SocketAddr::from(([1, 1, 1, 1], 443));
    match std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(2)) {
        Ok(_) => panic!("escaped"),
        Err(error) => panic!("held: {error}"),
    }
}
