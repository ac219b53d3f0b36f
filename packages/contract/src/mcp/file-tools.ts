import { SandboxReference } from '../operations/sandbox-reference.ts';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { nullable, optional, READS, REPLACES, TextOnly, type ToolSchema } from './tool-schema.ts';

const MAX_LISTED = 1000;

const Path = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: '^[^\\u0000]+$',
  description: 'Path in the sandbox; a relative one begins at its working directory',
});
const Whole = Type.Integer({ minimum: 0 });
const Uri = Type.String({ description: 'Reads the whole file with resources/read' });
const OF_FILE = { ...SandboxReference, path: Path };

const Written = strictObject({
  path: Type.String({ description: 'Absolute' }),
  size_bytes: Type.Integer(),
  uri: Uri,
});

export const fileTools = {
  sandbox_read_file: {
    title: 'Read a file',
    description:
      'Read a text file of a running sandbox, all of it or some lines; an image comes back as an image. Of a long file the first ' +
      'part is shown: read on with offset.',
    hints: READS,
    input: strictObject({
      ...OF_FILE,
      offset: optional(Type.Integer({ minimum: 1 }), 'Line to begin with, the first is 1'),
      limit: optional(Type.Integer({ minimum: 1 }), 'How many lines at most'),
    }),
    isText: true,
    output: strictObject({
      path: Type.String({ description: 'Absolute' }),
      kind: Type.Enum(['text', 'image', 'binary']),
      size_bytes: Type.Integer(),
      first_line: nullable(Type.Integer(), 'Number of the first line of text; null when there is none'),
      last_line: nullable(Type.Integer(), 'Number of the last line of text; null when there is none'),
      has_more: Type.Boolean({ description: 'Whether the file goes on behind this' }),
      uri: Uri,
    }),
  },
  sandbox_write_file: {
    title: 'Write a file',
    description:
      'Write a text file of a running sandbox, and make the folders that lead to it. A file that is there is replaced. For a ' +
      'change to a file use sandbox_edit_file, for bytes sandbox_upload_file.',
    hints: REPLACES,
    input: strictObject({
      ...OF_FILE,
      content: Type.String({ description: 'All of the text' }),
      is_executable: optional(Type.Boolean(), 'Whether it can be run as a program'),
    }),
    output: Written,
  },
  sandbox_edit_file: {
    title: 'Edit a file',
    description:
      'Replace a text in a file of a running sandbox by another. The text must be in the file exactly once, as sandbox_read_file ' +
      'shows it, spaces and line breaks included; with replace_all every occurrence is replaced.',
    hints: { ...REPLACES, idempotentHint: false },
    input: strictObject({
      ...OF_FILE,
      old_text: Type.String({ minLength: 1, description: 'What is in the file' }),
      new_text: Type.String({ description: 'What comes in its place' }),
      replace_all: optional(Type.Boolean(), 'Replace every occurrence'),
    }),
    output: strictObject({
      path: Type.String({ description: 'Absolute' }),
      replacements: Type.Integer(),
      lines: Type.Array(Type.Integer(), { description: 'Where the replaced texts began' }),
      size_bytes: Type.Integer(),
      uri: Uri,
    }),
  },
  sandbox_list_files: {
    title: 'List files',
    description: `List what lies directly in a folder of a running sandbox, by name, at most ${MAX_LISTED} entries.`,
    hints: READS,
    input: strictObject({
      ...SandboxReference,
      path: optional(Path, 'Folder; the working directory of the sandbox unless given'),
      offset: optional(Whole, 'How many entries to skip'),
      limit: optional(Type.Integer({ minimum: 1, maximum: MAX_LISTED }), 'How many entries at most'),
    }),
    output: strictObject({
      path: Type.String({ description: 'Absolute' }),
      entries: Type.Array(
        strictObject({
          name: Type.String(),
          kind: Type.Enum(['file', 'directory', 'symlink', 'other']),
          size_bytes: Type.Integer(),
          mode: Type.String({ description: 'Permission bits, octal' }),
          modified_at: nullable(Type.String(), 'RFC 3339, UTC'),
        }),
      ),
      total: Type.Integer({ description: 'How many entries the folder has' }),
      has_more: Type.Boolean(),
    }),
  },
  sandbox_upload_file: {
    title: 'Upload bytes to a file',
    description:
      'Write bytes, given as base64, to a file of a running sandbox, and make the folders that lead to it. A large file comes in ' +
      'pieces: the first replaces what is there, the others are appended.',
    hints: { ...REPLACES, idempotentHint: false },
    input: strictObject({
      ...OF_FILE,
      data: Type.String({
        pattern: '^[A-Za-z0-9+/]*={0,2}$',
        description: 'Base64, padded',
      }),
      append: optional(Type.Boolean(), 'Add to the end of the file instead of replacing it'),
    }),
    output: Written,
  },
  sandbox_download_file: {
    title: 'Download a file',
    description:
      'Get a link to a file of a running sandbox, to be read with resources/read; with include_data also its bytes as base64, in ' +
      'pieces of up to 1 MiB.',
    hints: READS,
    input: strictObject({
      ...OF_FILE,
      include_data: optional(Type.Boolean(), 'Answer with bytes too'),
      offset: optional(Whole, 'First byte of the piece, 0 unless given; with include_data'),
      length: optional(Type.Integer({ minimum: 1, maximum: 1_048_576 }), 'Bytes at most; with include_data'),
    }),
    output: strictObject({
      path: Type.String({ description: 'Absolute' }),
      size_bytes: Type.Integer(),
      mime_type: Type.String(),
      uri: Uri,
      data: nullable(Type.String(), 'Base64; null unless it was asked for'),
      next_offset: nullable(Type.Integer(), 'Where the next piece begins; null at the end'),
    }),
  },
  sandbox_remove_file: {
    title: 'Remove a file or folder',
    description:
      'Remove a file of a running sandbox, or with recursive a folder and all that is in it. An empty folder goes without.',
    hints: REPLACES,
    input: strictObject({ ...OF_FILE, recursive: optional(Type.Boolean(), 'With all that is in it') }),
    ...TextOnly,
  },
} as const satisfies Record<string, ToolSchema>;
