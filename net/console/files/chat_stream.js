// Server-sent events of an answer, one after the other.

/// The events of a stream as JSON, until its end mark. Throws where it ends before.
export async function* events_of(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error('The stream ended before the answer was complete.');
      text += value;
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const data = text.slice(0, end).split('\n').filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).trimStart()).join('\n');
        text = text.slice(end + 2);
        if (data === '[DONE]') return;
        if (data !== '') yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/// What the chunks of an answer add up to.
export class answer {
  content = '';
  calls = [];
  reason = null;
  usage = null;

  /// Takes a chunk; returns the piece of text that is new, with its tokens.
  take(chunk) {
    if (chunk.error) throw new Error(chunk.error.message);
    if (chunk.usage) this.usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (!choice) return null;
    if (choice.finish_reason) this.reason = choice.finish_reason;
    for (const part of choice.delta?.tool_calls ?? []) this.#call(part);
    const text = choice.delta?.content ?? '';
    this.content += text;
    const tokens = choice.logprobs?.content ?? [];
    return text === '' && tokens.length === 0 ? null : { text, tokens };
  }

  #call(part) {
    const call = this.calls[part.index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } };
    if (part.id) call.id = part.id;
    call.function.name += part.function?.name ?? '';
    call.function.arguments += part.function?.arguments ?? '';
  }

  /// As the next request tells it.
  message() {
    const calls = this.calls.filter(Boolean);
    return calls.length ? { role: 'assistant', content: this.content || null, tool_calls: calls }
      : { role: 'assistant', content: this.content };
  }
}
