import { STARTING_MESSAGE, type FetchProgress } from '@svc/contract/orchestrator';
import type { ImageProgress } from '@svc/engine/client';

/** Progress of the engine in words for callers. `isStarted`: the sandbox is started once its image is ready. */
export function toProgress(progress: ImageProgress, isStarted: boolean): FetchProgress {
  const unknown = { doneBytes: null, totalBytes: null };
  switch (progress.step) {
    case 'resolving':
      return { message: `resolving image ${progress.reference}`, ...unknown };
    case 'waiting':
      return { message: 'waiting for other pulls to end', ...unknown };
    case 'downloading': {
      const { doneBytes, totalBytes } = progress;
      return { message: 'downloading image', doneBytes, totalBytes };
    }
    case 'unpacking':
      return { message: 'unpacking image', ...unknown };
    case 'building':
      return { message: progress.message, ...unknown };
    case 'done':
      return { message: isStarted ? STARTING_MESSAGE : 'image is ready', ...unknown };
    default:
      return progress satisfies never;
  }
}
