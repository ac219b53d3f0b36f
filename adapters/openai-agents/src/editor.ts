import { applyDiff, type ApplyPatchResult, type Editor } from '@openai/agents-core';
import {
  SandboxApplyPatchDiffError,
  SandboxApplyPatchFileNotFoundError,
  SandboxWorkspaceReadNotFoundError,
} from '@openai/agents-core/sandbox';
import type { Files } from './files.ts';

/** Applies patches to files of the workspace, as a user. */
export function editorOf(files: Files, user: string | undefined): Editor {
  return {
    createFile: async ({ path, diff }) => {
      await files.write(path, patched(path, '', diff, 'create'), user);
      return done('Created', path);
    },
    updateFile: async ({ path, diff, ...operation }) => {
      const old = await found(path, files.read(path, user));
      // One that is not text is refused and not damaged.
      const text = new TextDecoder('utf-8', { fatal: true }).decode(old);
      const target = operation.moveTo ?? path;
      await files.write(target, patched(path, text, diff, 'default'), user);
      if (target !== path) await files.remove(path, user);
      return done('Updated', target);
    },
    deleteFile: async ({ path }) => {
      await found(path, files.remove(path, user));
      return done('Deleted', path);
    },
  };
}

function done(verb: string, path: string): ApplyPatchResult {
  return { status: 'completed', output: `${verb} ${path}` };
}

function patched(path: string, text: string, diff: string, mode: 'create' | 'default'): string {
  try {
    return applyDiff(text, diff, mode);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new SandboxApplyPatchDiffError(`The patch does not fit ${path}: ${said}`, { path });
  }
}

async function found<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof SandboxWorkspaceReadNotFoundError)) throw error;
    throw new SandboxApplyPatchFileNotFoundError(`File not found: ${path}`, { path });
  }
}
