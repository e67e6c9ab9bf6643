// The npm package @anthropic-ai/sdk against a server: URL MODEL CASE; prints one JSON line.
import Anthropic from "@anthropic-ai/sdk";

const [url, model, name] = process.argv.slice(2);
const client = new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0, timeout: 600_000 });
const messages = [{ role: "user", content: "What is the weather in Paris?" }];
const long = [{ role: "user", content: "Write a very long story." }];
const input_schema = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"], additionalProperties: false };
const tools = [{ name: "get_weather", description: "Weather of a city", input_schema }];
const more = { model, max_tokens: 64, temperature: 0 };
const joined = (message) => message.content.filter((b) => b.type === "text").map((b) => b.text).join("");

const cases = {
  async chat() {
    const answer = await client.messages.create({ messages, ...more });
    return { text: joined(answer), finish: answer.stop_reason, tokens: answer.usage.output_tokens };
  },
  async stream() {
    const final = await client.messages.stream({ messages, ...more }).finalMessage();
    return { text: joined(final), finish: final.stop_reason, tokens: final.usage.output_tokens };
  },
  async tools() {
    const rounds = [];
    for (const streamed of [false, true]) {
      const asked = { messages, tools, tool_choice: { type: "any", disable_parallel_tool_use: true }, ...more };
      const answer = streamed ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
      const call = answer.content.find((b) => b.type === "tool_use");
      const result = { type: "tool_result", tool_use_id: call.id, content: "18 degrees, sunny" };
      const rest = [{ role: "assistant", content: answer.content }, { role: "user", content: [result] }];
      const second = await client.messages.create({ messages: [...messages, ...rest], tools, tool_choice: { type: "none" }, ...more });
      rounds.push({ name: call.name, arguments: call.input, finish: answer.stop_reason, id: call.id, answer: joined(second) });
    }
    return rounds;
  },
  async cancel() {
    const events = await client.messages.create({ messages: long, model, max_tokens: 1500, stream: true });
    for await (const event of events) if (event.type === "content_block_delta") break;
    events.controller.abort();
    return {};
  },
  async overflow() {
    try {
      await client.messages.create({ messages: [{ role: "user", content: "word ".repeat(40000) }], ...more });
    } catch (error) {
      if (!(error instanceof Anthropic.BadRequestError)) throw error;
      return { status: error.status, code: error.error.error.type, message: error.error.error.message };
    }
  },
  async models() {
    return (await client.models.list()).data.map((m) => m.id);
  },
  async count() {
    const counted = (await client.messages.countTokens({ model, messages })).input_tokens;
    return { counted, used: (await client.messages.create({ messages, ...more })).usage };
  },
};

console.log(JSON.stringify(await cases[name]()));
