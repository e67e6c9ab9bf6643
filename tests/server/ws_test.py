"""/ws/chat: a conversation over a WebSocket; equal to `hearth generate`, and to itself whatever its clients do.

HEARTH_TEST_STREAM_SECONDS  how long the full tier runs 16 chats beside 64 streams; 60
"""
import concurrent.futures
import json
import os
import re
import signal
import time

import pytest
from library_test import add, serve
from running import ROOT, Server, streamed_text, write_keys
from ws import BINARY, CLOSE, PING, TEXT, Chat, Closed, Refused, WebSocket, closes

PROMPT = "Why is the sky blue?"
GREEDY = {"temperature": 0, "max_tokens": 24}
TIER = os.environ.get("HEARTH_TEST_TIER", "quick")
ENDLESS = {"logit_bias": {str(i): -100 for i in (0, 2)}}
KEY, STAYS, GOES = "key-of-a-client-0123456789", "admin-that-stays-0123456789", "admin-that-goes-9876543210"


@pytest.fixture
def chat(server):
    with Chat(server) as one:
        yield one


def settled(server, active=0, seconds=5):
    deadline = time.monotonic() + seconds
    while True:
        batch = server.get("/stats").json()["batch"]
        if batch["active_rows"] + batch["pending_rows"] == active:
            return batch
        assert time.monotonic() < deadline, batch
        time.sleep(0.02)


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def open_requests(server):
    models = server.get("/api/ps", headers={"Authorization": "Bearer " + server.token()}).json()["models"]
    return sum(m["open_requests"] for m in models)


def greedy(chat, **more):
    assert chat.answer_to("set_sampling", **{**GREEDY, **more})["type"] == "ack"
    return chat


def begin_endless(chat, **more):
    greedy(chat, **{"max_tokens": 1500, **ENDLESS, **more})
    assert chat.answer_to("prompt", text="Count for ever.")["type"] == "ack"
    start, _ = chat.until("turn_start")
    chat.until("text_delta")
    return start


def test_it_says_what_answers(server, chat):
    model = server.get("/v1/models").json()["data"][0]
    assert chat.ready["model"] == model["id"] and chat.ready["context_window"] == 2048 and chat.ready["vision"] is False
    assert chat.ready["tools"] == [] and isinstance(chat.ready["sampling_defaults"], dict)
    assert chat.ready["build"] == server.get("/version").json()["version"]


def test_a_greedy_answer_is_that_of_generate(server, hearth, model_file, chat):
    alone = json.loads(hearth.run("generate", model_file("smollm2"), PROMPT, "--max-tokens", "24", "--json").stdout)
    turn = greedy(chat).turn(text=PROMPT)
    assert turn.text == alone["text"] and turn.reason == "length" and not turn.errors
    usage = turn.end["usage"]
    assert usage["prompt_tokens"] == len(alone["prompt_ids"]) and usage["completion_tokens"] == 24
    assert turn.end["timings"]["decode_ms"] > 0 and turn.end["model"] == chat.ready["model"] and turn.end["max_tokens"] == 24
    context = chat.next()
    assert context["type"] == "context" and context["contextWindow"] == 2048
    assert context["tokens"] == usage["total_tokens"] and context["percent"] == pytest.approx(100 * context["tokens"] / 2048)


def test_a_conversation_is_that_of_chat_completions(server, chat):
    greedy(chat)
    assert chat.answer_to("set_system", text="Answer in one sentence.")["type"] == "ack"
    messages = [{"role": "system", "content": "Answer in one sentence."}]
    for text in ("Name a colour.", "And another one?", "Which of them is warmer?"):
        messages.append({"role": "user", "content": text})
        turn = chat.turn(text=text)
        want = server.post("/v1/chat/completions", {"messages": messages, **GREEDY}).json()["choices"][0]["message"]["content"]
        assert turn.text == want
        messages.append({"role": "assistant", "content": turn.text})


def test_branches(server, chat):
    first = greedy(chat).turn(text=PROMPT)
    again = chat.turn("regenerate", message=first.message)
    assert again.text == first.text and again.message != first.message and again.start["parent"] == first.start["parent"]
    other = chat.turn("edit", message=first.start["parent"], text="Name a colour.")
    assert other.text == server.chat("Name a colour.", max_tokens=24).json()["choices"][0]["message"]["content"]
    follow = chat.turn(text="And more?", parent=first.message)
    messages = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": first.text}, {"role": "user", "content": "And more?"}]
    assert follow.text == server.post("/v1/chat/completions", {"messages": messages, **GREEDY}).json()["choices"][0]["message"]["content"]
    for type, fields in (("regenerate", {"message": "m999"}), ("edit", {"message": first.message, "text": "x"}),
                         ("prompt", {"text": "x", "parent": "nowhere"})):
        refused = chat.answer_to(type, **fields)
        assert refused["type"] == "error" and refused["kind"] == "invalid_argument", refused


def test_abort_frees_the_row_and_keeps_what_was_said(server, chat):
    start = begin_endless(chat)
    assert settled(server, 1)
    chat.send("abort")
    end, frames = chat.until("turn_end")
    assert end["reason"] == "aborted" and end["turn"] == start["turn"] and end["usage"]["completion_tokens"] > 0
    settled(server)
    assert chat.answer_to("abort")["type"] == "ack", "nothing to stop is no error"
    turn = greedy(chat).turn(text=PROMPT, parent=None)
    assert turn.reason == "length"


def test_what_is_queued_follows_the_turn(server, chat):
    begin_endless(chat)
    refused = chat.answer_to("prompt", text="too early")
    assert refused["type"] == "error" and refused["kind"] == "busy" and "turn 1" in refused["sentence"]
    for text in ("one", "two", "three"):
        chat.send("queue", text=text)
    chat.send("unqueue", index=1)
    for want in (["one"], ["one", "two"], ["one", "two", "three"], ["one", "three"]):
        update, _ = chat.until("queue_update")
        assert update["follow_up"] == want and update["steering"] == []
    assert chat.answer_to("unqueue", index=2)["kind"] == "invalid_argument"
    chat.send("abort")
    update, _ = chat.until("queue_update")
    assert update["follow_up"] == []
    assert chat.until("turn_end")[0]["reason"] == "aborted"
    # A turn that ends by itself is followed by the next.
    greedy(chat, max_tokens=200)
    assert chat.answer_to("prompt", text=PROMPT)["type"] == "ack"
    chat.send("queue", text="Name a colour.")
    assert chat.until("queue_update")[0]["follow_up"] == ["Name a colour."]
    first, _ = chat.until("turn_end")
    assert chat.until("queue_update")[0]["follow_up"] == []
    assert chat.read_turn().start["turn"] == first["turn"] + 1
    # With no turn under way it does not wait.
    assert chat.turn("queue", text="And another one?").reason in ("stop", "length")


def test_a_frame_is_taken_once(chat):
    greedy(chat)
    turn = chat.turn(text=PROMPT, id="once")
    assert chat.next()["type"] == "context"
    repeated = chat.answer_to("prompt", text=PROMPT, id="once")
    assert repeated["type"] == "ack" and repeated["repeated"] is True
    assert chat.answer_to("ping")["seq"] == repeated["seq"] + 1, "no second turn"
    assert turn.reason == "length"
    for _ in range(2):  # one that was refused is not taken
        assert chat.answer_to("prompt", text="", id=7)["type"] == "error"


PAGE = (ROOT / "docs" / "server-api.md").read_text()
TAKEN = re.findall(r"^\| `([a-z_]+)` \|", PAGE[PAGE.index("### Frames of the client"):PAGE.index("### Frames of the server")], re.M)
NOT_YET = re.findall(r"`([a-z_]+)`", re.search(r"^Not there yet: (.*?)\. ", PAGE, re.S | re.M)[1])


def test_frames_are_those_of_the_page(chat):
    assert len(TAKEN) > 10 and len(NOT_YET) >= 10
    for type in NOT_YET:
        refused = chat.answer_to(type, anything=[1])
        assert refused["type"] == "error" and refused["kind"] == "not_supported" and refused["frame"] == type, refused
        assert type in refused["sentence"]
    for type in set(TAKEN) - {"new_session"}:
        answer = chat.answer_to(type, text=3, message=3, model=3, effort=3, spec=3, index="x", conversation=3, temperature="x")
        plain = type in ("abort", "ping")
        assert answer["type"] == ("ack" if plain else "error"), (type, answer)
        if not plain:
            assert answer["kind"] == "invalid_argument" and answer["param"], (type, answer)


BAD = [
    ("not JSON", "{", "JSON"),
    ("an array", "[]", "object"),
    ("no id", '{"type": "ping"}', "id"),
    ("an empty id", '{"type": "ping", "id": ""}', "id"),
    ("a long id", json.dumps({"type": "ping", "id": "x" * 65}), "id"),
    ("no type", '{"id": 1}', "type"),
    ("an unknown type", '{"id": 1, "type": "evil\\u0000"}', "type"),
    ("deep", '{"id": 1, "type": ' + "[" * 200 + "]" * 200 + "}", "JSON"),
    ("two ids", '{"id": 1, "id": 2, "type": "ping"}', "id"),
    ("an image", json.dumps({"id": 1, "type": "prompt", "text": "x", "images": ["a"]}), "text only"),
    ("no text", json.dumps({"id": 1, "type": "prompt"}), "text"),
    ("a temperature of 6", json.dumps({"id": 1, "type": "set_sampling", "temperature": 6}), "temperature"),
    ("a bad stop", json.dumps({"id": 1, "type": "set_sampling", "stop": [""]}), "stop"),
    ("a reasoning budget", json.dumps({"id": 1, "type": "set_sampling", "reasoning_budget": -5}), "reasoning_budget"),
    ("a time that is none", json.dumps({"id": 1, "type": "set_sampling", "keep_alive": "soon"}), "keep_alive"),
    ("an effort", json.dumps({"id": 1, "type": "set_thinking", "effort": "much"}), "effort"),
]


@pytest.mark.parametrize("text, words", [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_frame_is_an_error_and_the_socket_stays(chat, text, words):
    chat.send_frame(TEXT, text)
    refused = chat.next()
    assert refused["type"] == "error" and refused["kind"] == "invalid_argument" and words in refused["sentence"], refused
    chat.send_frame(BINARY, b"{}")
    assert "binary" in chat.next()["sentence"]
    assert chat.answer_to("ping")["type"] == "ack"


def test_what_a_turn_cannot_do_is_an_error_and_its_end(chat):
    assert chat.answer_to("set_model", model="no/such-model")["kind"] == "not_found"
    turn = greedy(chat).turn(text="word " * 4000)
    assert turn.reason == "error" and turn.errors[0]["code"] == "context_length_exceeded"
    assert turn.errors[0]["kind"] == "invalid_argument" and "2048" in turn.errors[0]["sentence"]
    assert chat.answer_to("set_adapter", spec="none-such")["type"] == "ack"
    turn = chat.turn("edit", message=turn.start["parent"], text="Hi")
    assert turn.reason == "error" and "none-such" in turn.errors[0]["sentence"]


def test_new_session_forgets(server, chat):
    first = greedy(chat).turn(text=PROMPT)
    chat.next()
    sent = chat.send("new_session")
    chat.seq = 0
    assert chat.next() == {"seq": 1, "type": "ack", "id": sent}
    ready = chat.next()
    assert ready["type"] == "ready" and ready["conversation"] != chat.conversation
    assert greedy(chat).turn(text=PROMPT).text == first.text
    chat.next()
    # The one before can be come back to.
    chat.send("resume", conversation=chat.conversation, after_seq=first.end["seq"])
    chat.seq = first.end["seq"]
    frames = [chat.next() for _ in range(2)]
    assert [f["type"] for f in frames] == ["context", "ack"]


# Frames of the protocol


# unmasked, oversized, in fragments, bad UTF-8.
def test_what_is_no_message_closes_with_its_code(server):
    half = '{"type": "ping", "id": "' + "x" * 700_000
    for code, sends in [
        (1002, lambda s: s.send_frame(TEXT, "{}", masked=False)),
        (1002, lambda s: s.send_frame(3, "{}")),
        (1002, lambda s: s.send_frame(0, "{}")),
        (1007, lambda s: s.send_frame(TEXT, b'{"type": "\xff"}')),
        (1007, lambda s: s.send_frame(TEXT, b"\xe2\x82")),
        (4413, lambda s: s.send_frame(TEXT, " " * ((1 << 20) + 1))),
        (4413, lambda s: (s.send_frame(TEXT, half, last=False), s.send_frame(0, half))),
        (1000, lambda s: s.send_frame(CLOSE, b"\x03\xe8")),
    ]:
        with Chat(server) as chat:
            sends(chat)
            assert closes(chat) == code
    with Chat(server) as chat:
        chat.send_frame(TEXT, '{"type": "ping", "id": 1}'.ljust(1 << 20))
        assert chat.next()["type"] == "ack", "1 MiB to the byte"


def test_fragments_and_ten_thousand_pings(chat):
    text = json.dumps({"type": "ping", "id": "größe"}, ensure_ascii=False).encode()
    for i, byte in enumerate(text):
        chat.send_frame(TEXT if i == 0 else 0, bytes([byte]), last=i + 1 == len(text))
        if i % 8 == 4:
            chat.send_frame(PING, b"between")
    pongs = 0
    while True:
        opcode, payload = chat.receive_frame()
        if opcode == TEXT:
            break
        assert payload == b"between"
        pongs += 1
    assert json.loads(payload)["id"] == "größe" and pongs == len(range(4, len(text), 8))
    chat.seq += 1
    for _ in range(100):
        for _ in range(100):
            chat.send_frame(PING, b"x")
        for _ in range(100):
            assert chat.receive_frame() == (10, b"x")
    assert chat.answer_to("ping")["type"] == "ack"


def test_without_an_upgrade_it_says_what_is_needed(server):
    answer = server.get("/ws/chat", headers={"Authorization": "Bearer " + server.token()})
    assert answer.status == 426 and answer.headers["upgrade"] == "websocket" and "Upgrade" in answer.json()["error"]["message"]
    token = {"Authorization": "Bearer " + server.token()}
    for headers, status in [({"Authorization": "Bearer wrong"}, 401), ({"x-api-key": ""}, 401), ({**token, "Origin": "http://evil.example"}, 403),
                            ({**token, "Origin": "null"}, 403), ({**token, "Sec-Fetch-Site": "cross-site"}, 403),
                            ({**token, "Host": "evil.example"}, 421), ({**token, "Sec-WebSocket-Version": "12"}, 426)]:
        with pytest.raises(Refused) as refused:
            WebSocket(server, headers)
        assert refused.value.status == status, headers
    with WebSocket(server, {**token, "Origin": f"http://127.0.0.1:{server.port}"}) as page:
        assert json.loads(page.receive())["type"] == "ready" and b"x-request-id" in page.head


# Clients that go, come back, or do not read


@pytest.mark.parametrize("how", ["fin", "rst", "close"])
def test_a_client_that_goes_away_ends_its_turn(server, how):
    before = settled(server)["cancelled_rows"]
    with Chat(server) as stays, Chat(server) as goes:
        begin_endless(goes)
        goes.send_frame(CLOSE, b"\x03\xe8") if how == "close" else goes.drop(reset=how == "rst")
        batch = settled(server)
        assert batch["cancelled_rows"] == before + 1
        assert greedy(stays).turn(text=PROMPT).reason == "length"


def test_a_client_that_comes_back_misses_nothing(server):
    with Chat(server) as first:
        begin_endless(first)
        seen = first.seq
    settled(server)
    with Chat(server) as second:
        own = second.conversation
        second.send("resume", conversation=first.conversation, after_seq=seen)
        second.seq = seen
        end, missed = second.until("turn_end")
        assert end["reason"] == "aborted" and all(f["type"] == "text_delta" for f in missed)
        assert [second.next()["type"], second.next()["type"]] == ["context", "ack"]
        turn = greedy(second).turn(text="Go on.")
        assert turn.start["turn"] == 2 and turn.reason in ("length", "stop")
        assert second.next()["type"] == "context"
        # What cannot be come back to leaves the conversation where it is.
        for conversation, kind in (("chat_none", "not_found"), (own, "not_found")):
            refused = second.answer_to("resume", conversation=conversation, after_seq=0)
            assert refused["kind"] == kind, refused
        refused = second.answer_to("resume", conversation=first.conversation, after_seq=10**6)
        assert refused["kind"] == "invalid_argument" and refused["param"] == "after_seq"
        second.send("resume", conversation=first.conversation, after_seq=0)
        second.seq = 0
        frames = second.until("turn_start")[1] + second.until("turn_end")[1]
        assert frames[0]["type"] == "ready"


def test_a_conversation_has_one_socket(server):
    with Chat(server) as first, Chat(server) as second:
        start = begin_endless(first)
        second.send("resume", conversation=first.conversation, after_seq=start["seq"])
        second.seq = start["seq"]
        second.until("ack")
        assert closes(first) == 1000
        second.until("text_delta")  # the turn has gone on
        assert server.get("/stats").json()["batch"]["active_rows"] == 1
        second.send("abort")
        assert second.until("turn_end")[0]["reason"] == "aborted"
    settled(server)


def test_where_the_log_does_not_reach_the_history_does(server):
    with Chat(server) as first:
        turn = greedy(first).turn(text=PROMPT)
        begin_endless(first)
        for _ in range(3):  # more than a log of 1 MiB
            first.send("queue", text="x" * 400_000)
            first.until("queue_update")
        first.send("abort")
        first.until("turn_end")
        first.until("context")
        last = first.seq
    with Chat(server) as second:
        second.send("resume", conversation=first.conversation, after_seq=1)
        second.seq = last
        history = second.next()
        assert history["type"] == "history" and history["conversation"] == first.conversation
        messages = history["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant"]
        assert messages[1]["content"] == turn.text and messages[1]["parent_id"] == messages[0]["id"] and messages[0]["parent_id"] is None
        assert messages[3]["finish_reason"] == "aborted" and messages[3]["id"] == history["head"]
        assert second.next()["type"] == "ack"


def test_a_history_ends_the_turn_and_the_queue_goes_on(server):
    with Chat(server) as first, Chat(server) as second:
        begin_endless(first)
        for count in range(1, 4):  # more than a log of 1 MiB
            first.send("queue", text="x" * 400_000)
            update, _ = first.until("queue_update")
            assert len(update["follow_up"]) == count
        second.send("resume", conversation=first.conversation, after_seq=1)
        history = json.loads(second.receive())
        assert history["type"] == "history" and history["messages"][-1]["finish_reason"] == "aborted"
        second.seq = history["seq"]
        for _ in range(3):
            assert second.read_turn().errors[0]["code"] == "context_length_exceeded"
        assert second.answer_to("unqueue", index=0)["kind"] == "invalid_argument", "none is left"
        assert greedy(second, max_tokens=2).turn(text=PROMPT, parent=history["head"]).reason == "length"


def test_the_end_of_a_turn_needs_no_model_store(tmp_path, model_file):
    cache = tmp_path / "hub"
    cache.mkdir()
    add(cache, "org/good", model_file("smollm2"))
    with serve(tmp_path, cache, "org/good", "--context", "256", "--batch", "2") as server, Chat(server) as chat:
        cache.rename(tmp_path / "away")
        cache.write_text("a file where the store was")
        greedy(chat, max_tokens=2).turn(text=PROMPT)
        assert chat.until("context")[0]["contextWindow"] == 256


def test_a_client_that_does_not_read_parks_its_own_row(server):
    with Chat(server, receive_bytes=4096) as slow, Chat(server) as other:
        begin_endless(slow, max_tokens=500)
        for _ in range(4):  # what is queued is echoed: 4 MB that nobody reads
            slow.send("queue", text="x" * 400_000)
        for _ in range(4):
            slow.send("unqueue", index=0)
        settled(server, seconds=20)
        assert open_requests(server) == 1, "it is held, and has not ended"
        assert greedy(other).turn(text=PROMPT).reason == "length"
        assert settled(server) and open_requests(server) == 1
        end, frames = slow.until("turn_end")
        assert end["reason"] == "length" and end["usage"]["completion_tokens"] == 500
        updates = [f["follow_up"] for f in frames if f["type"] == "queue_update"]
        assert updates[-1] == [] and len(updates) < 8, "who does not read is told of the last state"
    settled(server)


def test_nine_queued_megabytes_cut_nobody(server):
    """What the conversation has no room for is refused; the socket stays."""
    with Chat(server) as chat:
        begin_endless(chat)
        sent = [chat.send("queue", text=str(i) * 1_000_000) for i in range(9)]
        answers = {}
        while len(answers) < len(sent):
            frame = chat.until("ack", "error")[0]
            answers[frame["id"]] = frame["type"] if frame["type"] == "ack" else frame["kind"]
        assert [answers[id] for id in sent] == ["ack"] * 4 + ["busy"] * 5
        chat.send("abort")
        while chat.until("queue_update", "turn_end")[0].get("follow_up") != []:
            pass
        assert greedy(chat).turn(text=PROMPT).reason == "length"


def test_a_turn_that_begins_behind_what_nobody_reads_waits(server):
    with Chat(server, receive_bytes=4096) as slow:
        begin_endless(slow)
        mark = slow.seq
        for _ in range(2):
            slow.send("queue", text="x" * 300_000)
            slow.until("queue_update")
        slow.send("abort")
        slow.until("context")
        greedy(slow, max_tokens=300, **ENDLESS)  # far from its end when the hold comes
        for _ in range(5):  # the last frames again: 4 MB
            slow.send("resume", conversation=slow.conversation, after_seq=mark)
        until(lambda: open_requests(server) == 0)  # the aborted one has gone
        slow.send("prompt", text=PROMPT)
        until(lambda: open_requests(server) == 1)
        settled(server, seconds=20)
        assert open_requests(server) == 1, "it is held, and has not ended"
        while True:
            frame = json.loads(slow.receive())
            if frame["type"] == "turn_end" and frame["turn"] == 2:
                break
        assert frame["reason"] == "length" and frame["usage"]["completion_tokens"] == 300


def test_nine_sockets_of_one_credential_are_too_many(server):
    open_ones = [Chat(server) for _ in range(8)]
    with WebSocket(server, {"Authorization": "Bearer " + server.token()}) as ninth:
        assert closes(ninth) == 1013
    open_ones[0].drop()
    deadline = time.monotonic() + 5
    while True:
        try:
            open_ones[0] = Chat(server)
            break
        except Closed:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    for one in open_ones:
        assert one.answer_to("ping")["type"] == "ack"
        one.drop()


def run_beside(server, chats, streams, seconds, credentials):
    """R-17: unique prompts over both, again and again for so long; each answer as it would be alone."""
    prompts = [f"Canary {i * 7919}: tell me about the number {i}." for i in range(chats + streams)]
    tokens = [16 + 5 * (i % 7) for i in range(chats + streams)]
    alone = [server.chat(p, max_tokens=n).json()["choices"][0]["message"]["content"] for p, n in zip(prompts, tokens)]
    deadline = time.monotonic() + seconds

    def over_websocket(i):
        with Chat(server, credentials[i % len(credentials)]) as chat:
            greedy(chat, max_tokens=tokens[i])
            while True:
                turn = chat.turn(text=prompts[i])
                assert turn.text == alone[i] and turn.end["usage"]["completion_tokens"] <= tokens[i], i
                chat.next()
                if time.monotonic() > deadline:
                    return
                sent = chat.send("new_session")
                chat.seq = 0
                assert chat.next()["id"] == sent and chat.next()["type"] == "ready"
                greedy(chat, max_tokens=tokens[i])

    def over_stream(i):
        while True:
            assert streamed_text(server.chat(prompts[i], max_tokens=tokens[i], stream=True)) == alone[i], i
            if time.monotonic() > deadline:
                return

    with concurrent.futures.ThreadPoolExecutor(chats + streams) as pool:
        done = [pool.submit(over_websocket if i < chats else over_stream, i) for i in range(chats + streams)]
        for one in done:
            one.result()
    assert settled(server)


def test_eight_chats_beside_eight_streams_are_exact(server):
    run_beside(server, 8, 8, 10, [server.token()])


@pytest.mark.skipif(TIER != "full", reason="full tier")
def test_sixteen_chats_beside_sixty_four_streams_are_exact(tmp_path, model_file):
    admins = write_keys(tmp_path / "admins", STAYS)
    with Server(tmp_path, model_file("smollm2"), "--context", "2048", "--batch", "16", "--admin-key-file", admins) as server:
        run_beside(server, 16, 64, int(os.environ.get("HEARTH_TEST_STREAM_SECONDS", 60)), [server.token(), STAYS])


# Credentials and the server's end

def test_a_credential_that_is_taken_back_closes_its_sockets(tmp_path, model_file):
    """R-09; and conversations belong to the credential that began them."""
    admins = write_keys(tmp_path / "admins", STAYS, GOES)
    with Server(tmp_path, model_file("smollm2"), "--context", "2048", "--batch", "4", "--api-key-file", write_keys(tmp_path / "keys", KEY),
                "--admin-key-file", admins) as server:
        with pytest.raises(Refused) as refused:
            Chat(server, KEY)
        assert refused.value.status == 401, "a client's key is no admin key"
        stays, goes = Chat(server, STAYS), Chat(server, GOES)
        begin_endless(goes)
        foreign = stays.answer_to("resume", conversation=goes.conversation, after_seq=0)
        assert foreign["kind"] == "not_found"
        write_keys(admins, STAYS)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGHUP)
        assert closes(goes) == 4409
        assert time.monotonic() - begin < 1
        assert greedy(stays).turn(text=PROMPT).reason == "length"
        with pytest.raises(Refused):
            Chat(server, GOES)
        begin_endless(stays, max_tokens=300)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(Closed) as end:
            stays.until("turn_end")
            while True:
                stays.receive()
        assert end.value.code == 1001
        assert server.process.wait(40) == 0
