// Types of toolward.js: what the author of a Toolward driver uses.

/** Any value that JSON holds. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One call of one tool. The instance that runs it serves this call only. */
export interface Call<Input = any, Context = any, State = any> {
  /** Valid against the contract's `inputs`. Defaults of the schema are not filled in. */
  input: Input;
  /** Set by operator or embedder, valid against `contextSchema`; `{}` where there is none. */
  context: Context;
  /** UUIDv7, the same over retries and questions. */
  id: string;
  /** The id of the contract that is called. */
  tool: string;
  /** The version of the contract that is called (semver). */
  toolVersion: string;
  /** From 1; rises with retries, not with questions. */
  attempt: number;
  /** Milliseconds to the deadline, as measured when this call started. */
  remainingMs: number;
  /** The same for all attempts of one invocation: send it to upstreams. */
  idempotencyKey: string;
  /** The answers by key, where this call follows `ask`. */
  answers?: Record<string, Answer>;
  /** What `ask` was given to keep. */
  state?: State;
}

/** A JSON value, a reply with content blocks, or questions. */
export type Result<Output = any> = Output | Reply<Output> | Questions;

/** A promise is for StarlingMonkey, the engine of worlds with HTTP; QuickJS runs none. */
export type Handler<Input = any, Output = any> = (
  call: Call<Input>,
) => Result<Output> | Promise<Result<Output>>;

/** What a driver exports as `handler`. */
export interface Driver {
  execute(invocation: unknown): unknown;
}

/** Makes the driver of handlers by tool id. An id outside the list ends with `not_found`. */
export function driver(handlers: Record<string, Handler>): Driver;

export interface ErrorOptions {
  /** The same call may succeed later; the contract's `retry` decides. */
  retryable?: boolean;
  /** Not before this many milliseconds; makes the error retryable. */
  retryAfterMs?: number;
  /** What lies behind the error; left out where it has no JSON form. */
  cause?: unknown;
}

/**
 * A failed call. Any other exception ends the call with the code `internal`, its name
 * and message; its stack goes to the log.
 */
export class ToolError extends Error {
  /**
   * @param code one of AIP-14 (`input_invalid`, `not_found`, `upstream_error`, …) or the
   * tool's own, as `domain:code`
   */
  constructor(code: string, message: string, options?: ErrorOptions);
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

/** For whom a block is, and how important it is, from 0 to 1. */
export interface Annotations {
  audience?: ("user" | "assistant")[];
  priority?: number;
}

/** A content block, as MCP writes it, with bytes in place of base64. */
export type Block = { annotations?: Annotations } & (
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: Uint8Array; mimeType: string }
  | {
      type: "resource_link";
      uri: string;
      name: string;
      title?: string;
      description?: string;
      mimeType?: string;
      size?: number;
    }
  | { type: "resource"; resource: { uri: string; mimeType?: string; text: string } }
  | { type: "resource"; resource: { uri: string; mimeType?: string; blob: Uint8Array } }
);

/** A value, and what a model reads beside it. */
export class Reply<Output = any> {
  constructor(value: Output, content?: Block[]);
  value: Output;
  content: Block[];
}

/** A reply with these blocks. Without blocks, return the value itself. */
export function reply<Output>(value: Output, ...content: (Block | Block[])[]): Reply<Output>;

/** What `ask` returns. */
export interface Questions {
  readonly questions: [string, Question][];
}

/** What `form`, `sample` and `roots` return. */
export interface Question {
  readonly tag: "form" | "sample" | "roots";
}

/** What came back for one question. */
export type Answer =
  | { status: "accepted"; value: any }
  | { status: "declined" | "cancelled"; value?: undefined };

/**
 * Ends this call with questions. The handler is then called anew, in a fresh instance,
 * with `call.answers` and `call.state`. Each kind of question is declared in
 * `requires.user` and granted by the operator.
 *
 * @param state JSON of at most 64 KiB. The caller can read it, and can't change it.
 */
export function ask(questions: Record<string, Question>, state?: unknown): Questions;

/** The person fills in a flat JSON Schema object of strings, numbers, booleans and choices. */
export function form(message: string, schema: object): Question;

/** The caller's model answers: parameters of MCP `sampling/createMessage`. */
export function sample(parameters: object): Question;

/** The caller's workspace roots. */
export function roots(): Question;

type Write = (message: string, fields?: object) => void;

/** Records to the host: capped per call, redacted. `console` writes here too. */
export const log: {
  write(
    level: "trace" | "debug" | "info" | "warn" | "error",
    message: string,
    fields?: object,
  ): void;
  trace: Write;
  debug: Write;
  info: Write;
  warn: Write;
  error: Write;
};

export const progress: {
  /** `done` must rise from report to report. Never blocks; too many reports are dropped. */
  report(done: number, total?: number, message?: string): void;
};

/**
 * Secrets of `requires.secrets`. Errors: `unauthorised` where the secret is not declared
 * or granted, `auth_required` where it has no value, `upstream_error`.
 */
export const secrets: {
  /** Text for a request's header, which the host replaces by the secret. For this call only. */
  placeholder(slug: string): string;
  /** The value itself, which takes a policy line of its own. */
  reveal(slug: string): Uint8Array;
  /** Stores a value, where the contract says `mutates: ["secret:<slug>"]`. */
  store(slug: string, value: string | Uint8Array): void;
};

export interface CallOptions {
  /** Lowers the deadline of this call; never raises it. */
  timeoutMs?: number;
}

/** Other tools, of `requires.tools`. Errors are those of the callee, or `unauthorised`. */
export const tools: {
  /** The structured output of the tool. */
  call<Output = any>(tool: string, input: unknown, options?: CallOptions): Output;
  /** The same with its content blocks. */
  send<Output = any>(tool: string, input: unknown, options?: CallOptions): Reply<Output>;
};

/**
 * A bucket of `requires.database` or `mutates: ["database:<name>"]`, in the worlds
 * `driver-keyvalue` and `driver-all`. Errors: `unauthorised`, `upstream_error`.
 */
export class Bucket {
  constructor(name: string);
  get(key: string): Uint8Array | undefined;
  getText(key: string): string | undefined;
  getJson<Value = any>(key: string): Value | undefined;
  set(key: string, value: string | Uint8Array): void;
  setJson(key: string, value: unknown): void;
  /** A key without a value is no error. */
  delete(key: string): void;
  has(key: string): boolean;
  /**
   * Adds to the number under the key, from 0 where there is none, and returns the sum: one
   * step, whatever other calls do. Exact to 2^53.
   */
  increment(key: string, delta?: number): number;
  /** The keys, page by page, in no promised order. */
  keys(): IterableIterator<string>;
}

export const keyvalue: {
  open(name: string): Bucket;
};
