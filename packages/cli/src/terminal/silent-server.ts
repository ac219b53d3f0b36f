/** How the reason of a failure begins when a server takes connections and answers none. */
export const SILENT = 'it has not answered for';
