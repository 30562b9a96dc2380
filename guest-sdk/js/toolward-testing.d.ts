// Types of toolward-testing.js: a driver's own tests, without a host.

import type { Answer, Driver } from "./toolward.js";

/** What goes with a call beside its input. What is not given is denied. */
export interface Options {
  context?: object;
  /** From 1. */
  attempt?: number;
  /** Makes it the call that follows questions, with answers by key. */
  answers?: Record<string, Answer>;
  /** What the questions were given to keep. */
  state?: unknown;
  /** Secrets that may be used, revealed and stored. */
  secrets?: Record<string, string>;
  /** Other tools, and what each does with its input. */
  tools?: Record<string, (input: any) => unknown>;
  /** Buckets that may be written. The maps hold what the driver wrote. */
  buckets?: Record<string, Map<string, string | Uint8Array>>;
}

/** What a call returned, or asked, and what it reported on its way. */
export interface Invoked {
  value?: any;
  /** The blocks as the world has them. */
  content?: unknown[];
  /** The questions by key, where the driver asks. */
  questions?: Record<string, { tag: "form" | "sample" | "roots"; val?: unknown }>;
  state?: any;
  log: { level: string; message: string; fields?: object }[];
  progress: { done: number; total?: number; message?: string }[];
}

/** Makes one call of one tool. A failed call throws its `ToolError`. */
export function invoke(
  handler: Driver,
  tool: string,
  input: unknown,
  options?: Options,
): Promise<Invoked>;
