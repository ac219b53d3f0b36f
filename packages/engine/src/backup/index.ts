export { prepareStage, engineParts } from './save-data.ts';
export { restoreData } from './restore-data.ts';
export { writeArchive } from './write-archive.ts';
export type { Piece } from './archive-format.ts';
