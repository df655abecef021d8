// History: what a client would show of a session, made from the updates that it was sent.
const texts = {
  user_message_chunk: "user",
  agent_message_chunk: "agent",
  agent_thought_chunk: "thought",
};
const shown = ["title", "kind", "status", "locations", "content"];

/** The messages and calls in order, and the newest of each kind of update. */
export class History {
  items = [];
  // For each item its id; none for what this client's own person said.
  ids = [];
  // For each call the statuses that it was told to have.
  statuses = new Map();
  newest = {};

  /** A live prompt is not sent back. */
  prompted(text) {
    this.items.push({ user: text });
    this.ids.push(null);
  }

  take(update) {
    const kind = update.sessionUpdate;
    this.newest[kind] = update;
    if (kind in texts) this.text(texts[kind], update.messageId, update.content.text);
    else if (kind === "tool_call" || kind === "tool_call_update") this.call(update.toolCallId, update);
  }

  text(speaker, id, text) {
    const last = this.items.at(-1);
    if (last && this.ids.at(-1) === id && speaker in last) {
      last[speaker] += text;
    } else {
      this.items.push({ [speaker]: text });
      this.ids.push(id);
    }
  }

  call(id, update) {
    if (!this.ids.includes(id)) {
      this.items.push({ call: {} });
      this.ids.push(id);
    }
    const { call } = this.items[this.ids.indexOf(id)];
    for (const field of shown) {
      if (update[field] !== undefined) call[field] = update[field];
    }
    // A call that says no status when it is announced is pending.
    const announced = update.sessionUpdate === "tool_call" ? "pending" : undefined;
    const status = update.status ?? announced;
    if (status) this.statuses.set(id, [...(this.statuses.get(id) ?? []), status]);
  }

  /** The ids of all but the user's messages. */
  idsOfTheAgent() {
    return this.ids.filter((_, at) => !("user" in this.items[at]));
  }

  plan() {
    return this.newest.plan?.entries ?? null;
  }

  options() {
    return current(this.newest.config_option_update ?? {});
  }
}

/** What each option is set to, by an answer or an update that has them all. */
export const current = ({ configOptions = [] }) =>
  Object.fromEntries(configOptions.map((option) => [option.id, option.currentValue]));
