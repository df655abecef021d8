// Bodies of requests in the words of the official SDKs. Where the SDKs and their APIs differ, or where other servers
// document more than the API that they copy, the difference is stated here.
import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import type * as gemini from "@google/genai";
import type * as chat from "openai/resources/chat/completions";
import type * as responses from "openai/resources/responses/responses";

// The SDK no longer knows the temperature, which models before Claude Opus 4.7 take:
// https://platform.claude.com/docs/en/about-claude/models/migration-guide.
export type AnthropicRequest = MessageCreateParamsStreaming & { temperature?: number };

// What other servers than OpenAI's document for messages and parameters.
type Marked<Part> = Part & { cache_control?: { type: "ephemeral" } };
type Text = Marked<chat.ChatCompletionContentPartText>;
type Reasoned = {
  reasoning_content?: string;
  reasoning?: string;
  reasoning_text?: string;
  reasoning_details?: Array<Record<string, unknown>>;
};
type With<Message, Content> = Omit<Message, "content"> & { content: Content };
type ChatMessage =
  | With<chat.ChatCompletionSystemMessageParam, string | Array<Text>>
  | With<chat.ChatCompletionUserMessageParam, string | Array<Marked<chat.ChatCompletionContentPart>>>
  | (chat.ChatCompletionAssistantMessageParam & Reasoned)
  | With<chat.ChatCompletionToolMessageParam, string | Array<Text>>;
type ChatParameters = {
  reasoning?: { effort: string } | { enabled: boolean };
  thinking?: { type: "enabled" | "disabled"; keep?: "all"; clear_thinking?: boolean };
  enable_thinking?: boolean;
  chat_template_kwargs?: { enable_thinking: boolean };
  reasoning_format?: "parsed";
};
export type ChatRequest = Omit<chat.ChatCompletionCreateParamsStreaming, "messages"> &
  ChatParameters & { messages: Array<ChatMessage> };

// Without a store there are no ids to refer to, and the API takes items without them: openai/codex leaves them out too.
type WithoutId<Item> = Item extends { id: string } ? Omit<Item, "id"> : Item;
export type ResponsesRequest = Omit<responses.ResponseCreateParamsStreaming, "input"> & {
  input: Array<WithoutId<responses.ResponseInputItem>>;
};

// The SDK's enumerations are texts in JSON.
type Wire<T> = T extends string
  ? `${T}`
  : T extends Array<infer Item>
    ? Array<Wire<Item>>
    : T extends object
      ? { [Name in keyof T]: Wire<T[Name]> }
      : T;
// The documentation writes thinking levels in lower case: https://ai.google.dev/gemini-api/docs/gemini-3.
type ThinkingConfig = Omit<gemini.ThinkingConfig, "thinkingLevel"> & {
  thinkingLevel?: Lowercase<`${gemini.ThinkingLevel}`>;
};
// The SDK sends its `config` as fields of the body: https://ai.google.dev/api/generate-content.
export type GeminiRequest = Wire<{
  contents: Array<gemini.Content>;
  systemInstruction?: gemini.Content;
  tools?: Array<gemini.Tool>;
  toolConfig?: gemini.ToolConfig;
  generationConfig?: Omit<gemini.GenerationConfig, "thinkingConfig"> & { thinkingConfig?: ThinkingConfig };
}>;
