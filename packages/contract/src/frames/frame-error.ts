/** Thrown for bytes that are no frame; the connection they came from cannot be trusted any more. */
export class FrameError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FrameError';
  }
}
