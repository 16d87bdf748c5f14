/** Schemas of the health responses. Every field is required, with its exact type. */
import { z } from "zod";
import { subsystemNames } from "../../../src/health/subsystems.js";

const errorEvent = z.strictObject({ at: z.number().int(), message: z.string(), source: z.string().nullable() });

const subsystem = z.strictObject({
  status: z.enum(["pending", "running", "ready", "failed", "skipped", "dormant"]),
  since: z.number().int().nullable(),
  port: z.number().int().nullable(),
  requestedPort: z.number().int().nullable(),
  lastError: errorEvent.nullable(),
  enabled: z.boolean(),
  extra: z.strictObject({ reason: z.string() }).optional(),
});

const port = z.strictObject({ requested: z.number().int(), actual: z.number().int(), drifted: z.boolean() });

const subsystems = z.strictObject(Object.fromEntries(subsystemNames.map((name) => [name, subsystem])));

/** Body of `GET /health`. */
export const healthShape = z.strictObject({
  version: z.string().min(1),
  version_name: z.string().min(1),
  accepting: z.boolean(),
  mempool_size: z.number().int().nullable(),
  uptime_s: z.number().positive(),
  status: z.enum(["ok", "degraded", "dormant", "failing"]),
  dormant: z.boolean(),
  boot: z.strictObject({
    complete: z.boolean(),
    steps_total: z.number().int(),
    steps_ready: z.number().int(),
    steps_failed: z.number().int(),
    steps_skipped: z.number().int(),
    current: z.string().nullable(),
  }),
  subsystems,
  ports: z.partialRecord(z.enum(subsystemNames), port),
  main_loop: z.strictObject({
    heartbeat_age_s: z.number().nullable(),
    iterations_total: z.number().int(),
    exited: z.boolean(),
    exit_reason: z.string().nullable(),
  }),
  errors: z.strictObject({
    uncaught_total: z.number().int(),
    unhandled_rejection_total: z.number().int(),
    last_uncaught: errorEvent.nullable(),
  }),
});

/** Body of `GET /health/subsystems`. */
export const subsystemsShape = z.strictObject({ dormant: z.boolean(), subsystems });

/** A health response. */
export type HealthBody = z.infer<typeof healthShape>;
