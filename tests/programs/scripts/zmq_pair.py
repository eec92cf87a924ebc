import zmq

context = zmq.Context()
server, client = context.socket(zmq.REP), context.socket(zmq.REQ)
port = server.bind_to_random_port("tcp://127.0.0.1")
client.connect(f"tcp://127.0.0.1:{port}")
client.send(b"hello")
server.send(server.recv().upper())
print(client.recv().decode())
