/**
 * The close code of a channel's WebSocket when the sandbox behind it ran out of memory; the close reason is a sentence. It is in
 * the range that RFC 6455 leaves to applications and ends in 137, which shells report for a killed process.
 */
export const OUT_OF_MEMORY_CLOSE = 4137;
