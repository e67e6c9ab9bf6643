"""R-16: images are data or nothing. No address of a request is ever connected to, and no refusal repeats one."""
import json
import socket
import threading

import pytest

# What URL parsers disagree about, and where an attacker would like to be led.
HOSTS = ["127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0", "[::1]", "[::]",
         "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "localhost", "LOCALHOST", "localhost.", "foo.localhost",
         "169.254.169.254", "metadata.google.internal", "100.100.100.200", "[fd00:ec2::254]", "10.0.0.1", "192.168.0.1", "172.16.0.1", "[fe80::1]",
         "127.0.0.1.nip.io", "evil.example", "xn--lcalhost-0ya.example", "ⓛocalhost", "127。0。0。1", "１２７.0.0.1"]
SHAPES = ["http://{h}:{p}/x.png", "https://{h}:{p}/x.png"]
MORE = ["http://evil.example@127.0.0.1:{p}/", "http://127.0.0.1:{p}@evil.example/", "http://evil.example#@127.0.0.1:{p}/", "http:\\\\127.0.0.1:{p}\\x",
        "http://evil.example\\@127.0.0.1:{p}/", "//127.0.0.1:{p}/x", "file:///etc/passwd", "file://localhost/etc/passwd", "/etc/passwd",
        "gopher://127.0.0.1:{p}/_x", "ftp://127.0.0.1:{p}/x", "dict://127.0.0.1:{p}/x", "unix:/var/run/docker.sock", "http://127.0.0.1:{p}/../x",
        "http://[::1%25lo]:{p}/", "HTTP://127.0.0.1:{p}", " http://127.0.0.1:{p}", "http://\t127.0.0.1:{p}", "data:text/html;base64,PGI+", "x", ""]


@pytest.fixture(scope="module")
def trap():
    """A listener on this machine, and who came."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def accept():
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return
                came.append(address)
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], came
        listener.shutdown(socket.SHUT_RDWR)


def bodies(url):
    yield "/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
    yield "/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]}
    yield "/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": url}}]}]}


def test_no_address_is_called_or_repeated(server, trap):
    port, came = trap
    urls = [shape.format(h=host, p=port) for host in HOSTS for shape in SHAPES] + [one.format(p=port) for one in MORE]
    assert len(urls) >= 80
    for url in urls:
        for path, body in bodies(url):
            answer = server.post(path, body)
            message = answer.json()["error"]["message"]
            assert answer.status == 400 and "image" in message, (path, url, answer.body)
            for part in (url, str(port), "127.0.0.1", "passwd", "://", server.home.as_posix()):
                assert not part or part in ("x", "/") or part not in message, (path, url, message)
    assert came == []


@pytest.mark.parametrize("data", ["data:image/png;base64,", "data:image/png;base64,!!!!", "data:image/png;base64," + "A" * 100_000, "data:,x",
                                  "data:image/svg+xml,<svg onload=alert(1)>", "data:image/png;base64," + "iVBORw0KGgo=" * 1000])
def test_data_is_refused_without_being_looked_at(server, data):
    """The models read text only: no decoder sees it."""
    worker = server.workers()
    for path, body in bodies(data):
        answer = server.post(path, body)
        assert answer.status == 400 and len(answer.body) < 1000 and data[:40] not in json.dumps(answer.json()), answer.body[:300]
    assert server.workers() == worker
