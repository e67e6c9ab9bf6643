// The npm package openai against a server: URL MODEL CASE; prints one JSON line.
import OpenAI from "openai";

const [url, model, name] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "any", maxRetries: 0, timeout: 600_000 });
const messages = [{ role: "user", content: "What is the weather in Paris?" }];
const long = [{ role: "user", content: "Write a very long story." }];
const parameters = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"], additionalProperties: false };
const tools = [{ type: "function", function: { name: "get_weather", description: "Weather of a city", parameters } }];
const more = { model, temperature: 0, max_tokens: 64 };

const cases = {
  async chat() {
    const answer = await client.chat.completions.create({ messages, ...more });
    const choice = answer.choices[0];
    return { text: choice.message.content, finish: choice.finish_reason, tokens: answer.usage.completion_tokens };
  },
  async stream() {
    let text = "", finish = null, tokens = null;
    const asked = { messages, ...more, stream: true, stream_options: { include_usage: true } };
    for await (const chunk of await client.chat.completions.create(asked)) {
      if (chunk.usage) tokens = chunk.usage.completion_tokens;
      for (const choice of chunk.choices) {
        text += choice.delta.content ?? "";
        finish = choice.finish_reason ?? finish;
      }
    }
    return { text, finish, tokens };
  },
  async tools() {
    const rounds = [];
    for (const streamed of [false, true]) {
      const asked = { messages, tools, tool_choice: "required", parallel_tool_calls: false, ...more };
      const answer = streamed
        ? await client.chat.completions.stream(asked).finalChatCompletion()
        : await client.chat.completions.create(asked);
      const choice = answer.choices[0], call = choice.message.tool_calls[0];
      const said = { id: call.id, type: "function", function: { name: call.function.name, arguments: call.function.arguments } };
      const rest = [
        { role: "assistant", content: null, tool_calls: [said] },
        { role: "tool", tool_call_id: call.id, content: "18 degrees, sunny" },
      ];
      const second = await client.chat.completions.create({ messages: [...messages, ...rest], tools, tool_choice: "none", ...more });
      rounds.push({ name: call.function.name, arguments: JSON.parse(call.function.arguments), finish: choice.finish_reason,
                    id: call.id, answer: second.choices[0].message.content });
    }
    return rounds;
  },
  async cancel() {
    const events = await client.chat.completions.create({ messages: long, model, max_tokens: 1500, stream: true,
                                                          logit_bias: { 2: -100, 0: -100 } });
    for await (const _ of events) break;
    events.controller.abort();
    return {};
  },
  async overflow() {
    try {
      await client.chat.completions.create({ messages: [{ role: "user", content: "word ".repeat(40000) }], ...more });
    } catch (error) {
      if (!(error instanceof OpenAI.BadRequestError)) throw error;
      return { status: error.status, code: error.code, message: error.message };
    }
  },
  async models() {
    return (await client.models.list()).data.map((m) => m.id);
  },
  async responses() {
    const first = await client.responses.create({ model, input: "Say hello.", max_output_tokens: 16, temperature: 0 });
    const again = { model, input: "Again.", previous_response_id: first.id, max_output_tokens: 16, temperature: 0 };
    const second = await client.responses.create(again);
    const kinds = [];
    const asked = { model, input: "Say hello.", max_output_tokens: 16, temperature: 0, stream: true };
    for await (const event of await client.responses.create(asked)) kinds.push(event.type);
    const flat = [{ type: "function", name: "get_weather", parameters, strict: false }];
    const call = await client.responses.create({ model, input: "What is the weather in Paris?", tools: flat,
                                                 tool_choice: "required", parallel_tool_calls: false, max_output_tokens: 64 });
    const calls = call.output.filter((i) => i.type === "function_call").map((i) => [i.name, JSON.parse(i.arguments)]);
    return { text: first.output_text, status: first.status, more: second.usage.input_tokens > first.usage.input_tokens, kinds, calls };
  },
};

console.log(JSON.stringify(await cases[name]()));
