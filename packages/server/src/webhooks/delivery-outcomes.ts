/** `failed`: it will be retried. `dropped`: the backlog was too long. */
export type DeliveryOutcome = 'succeeded' | 'failed' | 'given_up' | 'dropped';

/** Counts outcomes of deliveries since this server was started. */
export class DeliveryOutcomes {
  readonly #counts = new Map<DeliveryOutcome, number>([
    ['succeeded', 0],
    ['failed', 0],
    ['given_up', 0],
    ['dropped', 0],
  ]);

  add(outcome: DeliveryOutcome, count = 1): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + count);
  }

  entries(): readonly (readonly [DeliveryOutcome, number])[] {
    return [...this.#counts];
  }
}
