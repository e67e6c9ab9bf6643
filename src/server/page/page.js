// The page at / of a server: its status, and a chat. Types are in comments; tests check them with tsc --checkJs --strict.
// What a model or the server says becomes text nodes, never markup. A key lives in this module's memory alone.

/** @typedef {{role: "user" | "assistant", content: string}} Message */
/** @typedef {{content?: string, reasoning_content?: string}} Delta */

/** Server-sent events out of pieces of a stream, wherever it was cut: the data of each event that is whole. */
export class EventParser {
  constructor() {
    this.rest = "";
  }

  /** @param {string} piece @returns {string[]} */
  push(piece) {
    const blocks = (this.rest + piece).split("\n\n");
    this.rest = blocks.pop() ?? "";
    const found = [];
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data:"));
      if (data.length > 0) found.push(data.map((line) => line.slice(5).replace(/^ /, "")).join("\n"));
    }
    return found;
  }
}

/** One event of a chat stream. Throws the server's sentence where it is an error.
 * @param {string} data @returns {Delta | "done"} */
export function deltaOf(data) {
  if (data === "[DONE]") return "done";
  const chunk = JSON.parse(data);
  if (chunk.error) throw new Error(chunk.error.message);
  return chunk.choices[0]?.delta ?? {};
}

/** @param {Response} response @returns {Promise<string>} the sentence of an error document */
async function sentenceOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `status ${response.status}: ${text.slice(0, 300)}`;
  }
}

/** @template {HTMLElement} T @param {string} id @param {new () => T} type @returns {T} */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

function start() {
  const status = element("status", HTMLParagraphElement), problem = element("problem", HTMLParagraphElement);
  const log = element("log", HTMLDivElement), model = element("model", HTMLSelectElement);
  const keyForm = element("key-form", HTMLFormElement), keyInput = element("key", HTMLInputElement);
  const askForm = element("ask-form", HTMLFormElement), question = element("question", HTMLTextAreaElement);
  const send = element("send", HTMLButtonElement), stop = element("stop", HTMLButtonElement);
  const clear = element("clear", HTMLButtonElement);
  let key = "";
  /** @type {Message[]} */
  let messages = [];
  /** @type {AbortController | null} */
  let running = null;

  /** @param {string} path @param {RequestInit} [options] @returns {Promise<Response>} */
  async function ask(path, options = {}) {
    const headers = new Headers(options.headers);
    if (key) headers.set("Authorization", `Bearer ${key}`);
    const response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
    if (response.status === 401 && keyForm.hidden) {
      if (key) problem.textContent = "The server does not know this key.";
      key = "";
      keyForm.hidden = false;
      keyInput.focus();
    }
    return response;
  }

  /** @param {string} text */
  function say(text) {
    if (status.textContent !== text) status.textContent = text;
  }

  async function refresh() {
    try {
      const ready = await ask("/ready"), stats = await ask("/stats");
      if (!stats.ok) return say("waiting for a key");
      const { server, admission, batch } = await stats.json();
      const state = ready.ok ? "ready" : (await ready.json()).reason;
      say(`${server.model}: ${state}, context ${admission.max_safe_context}, ${batch.active_rows} of ` +
          `${batch.configured} rows busy, ${batch.pending_rows} waiting`);
      if (model.options.length === 0) await listModels();
    } catch {
      say("the server does not answer");
    }
  }

  async function listModels() {
    const response = await ask("/v1/models");
    if (!response.ok) return;
    for (const one of (await response.json()).data) model.add(new Option(one.id, one.id, one.serving, one.serving));
  }

  /** @param {string} who @returns {HTMLElement} where the words go */
  function turn(who) {
    const article = document.createElement("article"), heading = document.createElement("h2");
    heading.textContent = who;
    article.append(heading);
    log.append(article);
    return article;
  }

  /** Appends to the last text of that kind in the turn. @param {HTMLElement} article @param {"p" | "pre"} kind @param {string} text */
  function write(article, kind, text) {
    const follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    let block = article.lastElementChild;
    if (block?.localName !== kind) {
      block = document.createElement(kind);
      if (kind === "pre") block.setAttribute("aria-label", "thoughts");
      article.append(block);
    }
    if (block.lastChild instanceof Text) block.lastChild.appendData(text);
    else block.append(text);
    if (follows) log.scrollTop = log.scrollHeight;
  }

  /** Streams one answer into the log. @param {AbortSignal} signal @returns {Promise<string>} */
  async function answer(signal) {
    const body = JSON.stringify({ model: model.value || undefined, messages, stream: true });
    const response = await ask("/v1/chat/completions", { method: "POST", body, signal, headers: { "Content-Type": "application/json" } });
    if (!response.ok || !response.body) throw new Error(await sentenceOf(response));
    const article = turn("Model"), parser = new EventParser(), reader = response.body.getReader();
    const decoder = new TextDecoder();
    let content = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Error("The answer broke off.");
        for (const data of parser.push(decoder.decode(value, { stream: true }))) {
          const delta = deltaOf(data);
          if (delta === "done") return content;
          if (delta.reasoning_content) write(article, "pre", delta.reasoning_content);
          if (delta.content) write(article, "p", delta.content);
          content += delta.content ?? "";
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
      write(article, "p", " (stopped)");
      return content;
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  /** @param {boolean} busy */
  function show(busy) {
    send.disabled = busy;
    stop.disabled = !busy;
    log.setAttribute("aria-busy", String(busy));  // a screen reader reads the answer once it is whole
  }

  async function converse() {
    const text = question.value.trim();
    if (!text || running) return;
    const before = messages, controller = new AbortController();
    running = controller;
    problem.textContent = "";
    messages = [...before, { role: "user", content: text }];
    const asked = turn("You");
    write(asked, "p", text);
    question.value = "";
    show(true);
    try {
      messages.push({ role: "assistant", content: await answer(controller.signal) });
    } catch (error) {
      messages = before;
      if (!controller.signal.aborted) problem.textContent = error instanceof Error ? error.message : String(error);
      if (!question.value) question.value = text;
    }
    running = null;
    show(false);
    if (keyForm.hidden) question.focus();
    await refresh();
  }

  askForm.addEventListener("submit", (event) => {
    event.preventDefault();
    void converse();
  });
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void converse();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") running?.abort();
  });
  stop.addEventListener("click", () => running?.abort());
  clear.addEventListener("click", () => {
    running?.abort();
    messages = [];
    log.replaceChildren();
    problem.textContent = "";
    question.focus();
  });
  keyForm.addEventListener("submit", (event) => {
    event.preventDefault();
    key = keyInput.value.trim();
    keyInput.value = "";
    keyForm.hidden = true;
    problem.textContent = "";
    question.focus();
    void refresh();
  });
  window.setInterval(() => {
    if (!document.hidden && !running && keyForm.hidden) void refresh();
  }, 5000);
  void refresh();
}

if (typeof document !== "undefined") start();
