// Fetches /hello from the port that it is given, on 127.0.0.1, over Rust's standard library.
use std::io::{Read, Write};
use std::net::TcpStream;

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port");
    let mut connection = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    connection.write_all(b"GET /hello HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    print!("{}", answer.split_once("\r\n\r\n").map_or("", |parts| parts.1));
    Ok(())
}
