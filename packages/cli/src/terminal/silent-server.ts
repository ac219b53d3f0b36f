/** The first words of the error for a server that accepts connections and does not answer. */
export const SILENT = 'it has not answered for';
