"""/v1/embeddings: the vectors of `hearth embed`, in both encodings; what cannot be embedded is refused."""
import base64
import json
import math
import struct
import time

import pytest
from running import Server, raw

TEXTS = ["The harbour lay quiet under the morning fog.", "Nobody spoke of the ship.", "你好，世界"]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory, model_file):
    with Server(tmp_path_factory.mktemp("embedder"), model_file("minilm")) as running:
        yield running


def vectors(answer):
    assert answer.status == 200, answer.body
    document = answer.json()
    assert document["object"] == "list" and [d["index"] for d in document["data"]] == list(range(len(document["data"])))
    assert document["usage"]["total_tokens"] == document["usage"]["prompt_tokens"] > 0
    return [d["embedding"] for d in document["data"]]


def test_vectors_are_those_of_the_command(embedder, hearth, model_file):
    alone = json.loads(hearth.run("embed", model_file("minilm"), *TEXTS, "--json").stdout)["embeddings"]
    got = vectors(embedder.post("/v1/embeddings", {"input": TEXTS}))
    assert got == alone
    assert vectors(embedder.post("/v1/embeddings", {"input": TEXTS[1]})) == [alone[1]]
    packed = vectors(embedder.post("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"}))
    assert [list(struct.unpack(f"<{len(base64.b64decode(p)) // 4}f", base64.b64decode(p))) for p in packed] == alone
    short = vectors(embedder.post("/v1/embeddings", {"input": TEXTS[0], "dimensions": 64}))[0]
    assert len(short) == 64 and math.isclose(sum(x * x for x in short), 1, abs_tol=1e-5)


@pytest.mark.parametrize("fields, param", [
    ({"input": []}, "input"), ({"input": ""}, "input"), ({"input": None}, "input"), ({"input": [1, 2]}, "input"), ({"input": "word " * 4000}, "input"),
    ({"dimensions": 0}, "dimensions"), ({"dimensions": 385}, "dimensions"), ({"encoding_format": "hex"}, "encoding_format"),
])
def test_bad_input_is_named(embedder, fields, param):
    answer = embedder.post("/v1/embeddings", {"input": "x", **fields})
    assert answer.status == 400 and answer.json()["error"]["param"] == param, answer.body


def test_each_model_does_its_own_work(embedder, server):
    answer = embedder.chat("Hi")
    assert answer.status == 400 and "embedding model" in answer.json()["error"]["message"]
    answer = server.post("/v1/embeddings", {"input": "Hi"})
    assert answer.status == 400 and "no embedding model" in answer.json()["error"]["message"]
    assert embedder.post("/tokenize", {"content": "Hello"}).json()["count"] > 0


def test_a_client_that_goes_away_ends_its_request(embedder):
    """More than a worker embeds at once: it stops between two steps, and the next client finds it free."""
    body = json.dumps({"input": [f"{i} " + "word " * 200 for i in range(1500)]}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    token = {"Authorization": "Bearer " + embedder.token()}

    def until(holds):
        deadline = time.monotonic() + 100
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def stats():
        return embedder.get("/stats").json()["batch"]

    before = stats()["cancelled_rows"]
    with raw(embedder) as running, raw(embedder) as waiting:
        for connection in (running, waiting):
            connection.sendall(head.encode() + body)
        until(lambda: embedder.get("/api/ps", headers=token).json()["models"][0]["open_requests"] == 2)
    until(lambda: stats()["cancelled_rows"] == before + 2)
    assert 'hearth_requests_total{route="/v1/embeddings",code="499"} 2' in embedder.get("/metrics").body.decode()
    assert len(vectors(embedder.post("/v1/embeddings", {"input": "x"}))) == 1
