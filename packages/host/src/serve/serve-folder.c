#include "serve/serve-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "request.h"
#include "serve/attributes.h"
#include "serve/contents.h"
#include "serve/entries.h"
#include "serve/listing.h"
#include "serve/removal.h"
#include "serve/serve-plan.h"
#include "serve/stat-overlay.h"

/** Set by the starting process. */
enum { DEVICE = 3, SOURCE = 4 };
/** Niceness below the engine, which serves all sandboxes. */
enum { BEHIND_ENGINE = 10 };

static int handle_init(struct server *server, const struct call *call, struct reply *reply) {
  (void)server;
  const struct fuse_init_in *in = (const struct fuse_init_in *)call->body;
  struct fuse_init_out *out = (struct fuse_init_out *)reply->data;
  *out = (struct fuse_init_out){
      .major = FUSE_KERNEL_VERSION,
      .minor = FUSE_KERNEL_MINOR_VERSION,
      .max_readahead = in->max_readahead,
      .flags = in->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_AUTO_INVAL_DATA | FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS),
      .max_background = 16,
      .congestion_threshold = 12,
      .max_write = MAX_TRANSFER_BYTES,
      .time_gran = 1,
      .max_pages = (uint16_t)(MAX_TRANSFER_BYTES / sysconf(_SC_PAGESIZE)), // 4 KiB, but 16 or 64 on some arm64 machines
  };
  reply->length = sizeof *out;
  return 0;
}

/** Other requests are answered with ENOSYS, and the kernel does without: extended attributes, locks (it has its own), ioctls. */
static const struct {
  handler run;
  size_t least_bytes;
} HANDLERS[] = {
    [FUSE_INIT] = {handle_init, sizeof(struct fuse_init_in)},
    [FUSE_LOOKUP] = {handle_lookup, 1},
    [FUSE_GETATTR] = {handle_getattr, 0},
    [FUSE_SETATTR] = {handle_setattr, sizeof(struct fuse_setattr_in)},
    [FUSE_READLINK] = {handle_readlink, 0},
    [FUSE_SYMLINK] = {handle_symlink, 1},
    [FUSE_MKNOD] = {handle_mknod, sizeof(struct fuse_mknod_in)},
    [FUSE_MKDIR] = {handle_mkdir, sizeof(struct fuse_mkdir_in)},
    [FUSE_UNLINK] = {handle_unlink, 1},
    [FUSE_RMDIR] = {handle_rmdir, 1},
    [FUSE_RENAME] = {handle_rename, sizeof(struct fuse_rename_in)},
    [FUSE_RENAME2] = {handle_rename2, sizeof(struct fuse_rename2_in)},
    [FUSE_LINK] = {handle_link, sizeof(struct fuse_link_in)},
    [FUSE_OPEN] = {handle_open, sizeof(struct fuse_open_in)},
    [FUSE_CREATE] = {handle_create, sizeof(struct fuse_create_in)},
    [FUSE_READ] = {handle_read, sizeof(struct fuse_read_in)},
    [FUSE_WRITE] = {handle_write, sizeof(struct fuse_write_in)},
    [FUSE_RELEASE] = {handle_release, sizeof(struct fuse_release_in)},
    [FUSE_FSYNC] = {handle_fsync, sizeof(struct fuse_fsync_in)},
    [FUSE_FSYNCDIR] = {handle_fsync, sizeof(struct fuse_fsync_in)},
    [FUSE_FALLOCATE] = {handle_fallocate, sizeof(struct fuse_fallocate_in)},
    [FUSE_LSEEK] = {handle_lseek, sizeof(struct fuse_lseek_in)},
    [FUSE_OPENDIR] = {handle_opendir, sizeof(struct fuse_open_in)},
    [FUSE_READDIR] = {handle_readdir, sizeof(struct fuse_read_in)},
    [FUSE_RELEASEDIR] = {handle_releasedir, sizeof(struct fuse_release_in)},
    [FUSE_STATFS] = {handle_statfs, 0},
};

static int run(struct server *server, const struct call *call, struct reply *reply) {
  uint32_t opcode = call->header->opcode;
  if (opcode >= sizeof HANDLERS / sizeof *HANDLERS || HANDLERS[opcode].run == NULL) return ENOSYS;
  if (call->length < HANDLERS[opcode].least_bytes) return EINVAL;
  return HANDLERS[opcode].run(server, call, reply);
}

static void forget_many(struct server *server, const struct call *call) {
  const struct fuse_batch_forget_in *in = (const struct fuse_batch_forget_in *)call->body;
  const struct fuse_forget_one *each = (const struct fuse_forget_one *)(call->body + sizeof *in);
  for (uint32_t index = 0; index < in->count; index++) {
    forget(&server->nodes, find_node(&server->nodes, each[index].nodeid), each[index].nlookup);
  }
}

/** True for requests without an answer. */
static bool take_notice(struct server *server, const struct call *call) {
  switch (call->header->opcode) {
    case FUSE_FORGET:
      forget(&server->nodes, node_of(server, call), ((const struct fuse_forget_in *)call->body)->nlookup);
      return true;
    case FUSE_BATCH_FORGET: forget_many(server, call); return true;
    case FUSE_INTERRUPT: return true;
    default: return false;
  }
}

static void answer(struct server *server, const struct call *call, char *space) {
  struct reply reply = {.data = space};
  int error = run(server, call, &reply);
  struct fuse_out_header header = {.unique = call->header->unique, .error = -error};
  struct iovec parts[2] = {{&header, sizeof header}, {reply.data, error == 0 ? reply.length : 0}};
  header.len = (uint32_t)(sizeof header + parts[1].iov_len);
  // Fails when the caller was killed meanwhile, and needs no answer.
  (void)!writev(server->device, parts, 2);
}

/** Runs until the last mount is gone. */
static int serve(struct server *server) {
  static char request[MAX_TRANSFER_BYTES + 64 * 1024] __attribute__((aligned(16)));
  static char space[MAX_TRANSFER_BYTES] __attribute__((aligned(16)));
  for (;;) {
    ssize_t length = read(server->device, request, sizeof request);
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    if (length < (ssize_t)sizeof(struct fuse_in_header)) return length < 0 && errno == ENODEV ? 0 : 1;
    const struct fuse_in_header *header = (const struct fuse_in_header *)request;
    struct call call = {header, request + sizeof *header, (size_t)length - sizeof *header};
    if (!take_notice(server, &call)) answer(server, &call, space);
  }
}

/** SAFETY: keeps only the capabilities to serve files. Not FSETID, so that the kernel strips set-user-id bits on every write. */
static int lower_privileges(void) {
  const unsigned kept =
      1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER | 1u << CAP_SETUID | 1u << CAP_SETGID;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{.effective = kept, .permitted = kept}};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return -1;
  return (int)syscall(SYS_capset, &header, sets);
}

/** Every file that the guest has open is open here. Beyond the limit opening fails for the guest. */
static void raise_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static int read_plan(char **arguments, struct server *server) {
  uint32_t quota_mib, overlay, is_mirrored;
  uint32_t *const numbers[PLAN_NUMBERS] = {
      &server->users.id_base,
      &server->users.disk_base,
      &server->users.disk_owner,
      &server->users.shown,
      &server->groups.id_base,
      &server->groups.disk_base,
      &server->groups.disk_owner,
      &server->groups.shown,
      &quota_mib,
      &overlay,
      &is_mirrored,
  };
  struct failure failure = {0};
  for (int index = 0; index < PLAN_NUMBERS; index++) {
    if (parse_number(arguments[index], 0, UINT32_MAX, numbers[index], &failure) < 0) return -1;
  }
  if (overlay > STAT_STRICT) return -1;
  server->overlay.plan = (struct stat_plan){(enum stat_kind)overlay, is_mirrored != 0};
  server->overlay.has_attributes = has_stat_attributes(SOURCE);
  server->quota.limit_bytes = quota_mib == 0 ? UINT64_MAX : (uint64_t)quota_mib << 20;
  return 0;
}

int serve_folder(int count, char **arguments) {
  static struct server server = {.device = DEVICE, .anchor = SOURCE};
  struct stat status;
  if (count != PLAN_NUMBERS || read_plan(arguments, &server) < 0) return 2;
  umask(0);
  if (setpriority(PRIO_PROCESS, 0, BEHIND_ENGINE) < 0) return 1;
  raise_file_limit();
  if (lower_privileges() < 0 || fstat(SOURCE, &status) < 0) return 1;
  server.nodes.root = remember(&server.nodes, SOURCE, &status);
  // The file system has no handles: reported to the starting process by the exit status.
  if (server.nodes.root == NULL) return 1;
  int probe = open_node(&server, server.nodes.root, O_PATH);
  if (probe < 0) return 1;
  close(probe);
  pid_t pid = fork();
  if (pid != 0) return pid < 0;
  setsid();
  return serve(&server);
}
