#ifndef SVC_SERVE_FOLDER_H
#define SVC_SERVE_FOLDER_H

/** `svc-host --serve-folder`, started by mount_served. Returns its exit status. */
int serve_folder(int count, char **arguments);

#endif
