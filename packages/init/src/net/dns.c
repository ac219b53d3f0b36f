#include "net/dns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/address.h"

// Runs only in the resolver child (resolve.c), so it may block and it may crash.

enum { RECORD = 17, NAME_TEXT_MAX = 254, SERVERS_MAX = 3, DOMAINS_MAX = 4, TRY_MS = 2500, TRIES = 2, PACKET = 4096 };
enum { TYPE_A = 1, TYPE_AAAA = 28, HEADER = 12, TRUNCATED = 0x02 };

struct found {
  unsigned char *records;
  size_t count;
};

struct servers {
  struct address at[SERVERS_MAX];
  size_t count;
  char domains[DOMAINS_MAX][NAME_TEXT_MAX];
  size_t domain_count;
};

static void look_in_hosts(const char *host, struct found *);
static void read_servers(struct servers *);
static void ask_all(const struct servers *, const char *name, struct found *);
static bool ask(const struct address *, const char *name, int type, struct found *);
static size_t write_query(unsigned char *out, const char *name, int type);
static ssize_t exchange(const struct address *, int kind, const unsigned char *query, size_t length, unsigned char *answer);
static void take_answers(const unsigned char *answer, size_t length, size_t at, int type, struct found *);

size_t look_up(const char *host, unsigned char *records) {
  struct found found = {records, 0};
  struct servers servers = {0};
  char full[2 * NAME_TEXT_MAX];
  if (!*host || strlen(host) >= NAME_TEXT_MAX) return 0;
  look_in_hosts(host, &found);
  if (!found.count) read_servers(&servers);
  bool is_short = !strchr(host, '.');
  for (size_t i = 0; is_short && !found.count && i < servers.domain_count; i++) {
    snprintf(full, sizeof full, "%s.%s", host, servers.domains[i]);
    if (strlen(full) < NAME_TEXT_MAX) ask_all(&servers, full, &found);
  }
  if (!found.count) ask_all(&servers, host, &found);
  return found.count;
}

static void add(struct found *found, int family, const void *bytes) {
  if (found->count == ADDRESSES_MAX) return;
  unsigned char *record = found->records + found->count++ * RECORD;
  memset(record, 0, RECORD);
  record[0] = (unsigned char)family;
  memcpy(record + 1, bytes, family == 4 ? 4 : 16);
}

static FILE *open_file(const char *path) {
  // SAFETY: the guest owns the path: opened non-blocking, so that a FIFO reads as empty.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
  if (fd >= 0 && !file) close(fd);
  return file;
}

static void look_in_hosts(const char *host, struct found *found) {
  char line[1024], *rest;
  FILE *file = open_file("/etc/hosts");
  while (file && fgets(line, sizeof line, file)) {
    unsigned char bytes[16];
    line[strcspn(line, "#\n")] = 0;
    char *word = strtok_r(line, " \t\r", &rest);
    if (!word) continue;
    int family = inet_pton(AF_INET, word, bytes) == 1 ? 4 : inet_pton(AF_INET6, word, bytes) == 1 ? 6 : 0;
    while (family && (word = strtok_r(NULL, " \t\r", &rest))) {
      if (!strcasecmp(word, host)) add(found, family, bytes);
    }
  }
  if (file) fclose(file);
}

static void read_servers(struct servers *servers) {
  char line[1024], *rest;
  FILE *file = open_file("/etc/resolv.conf");
  while (file && fgets(line, sizeof line, file)) {
    char *word = strtok_r(line, " \t\r\n", &rest), *value;
    if (!word) continue;
    bool is_server = !strcmp(word, "nameserver"), is_search = !strcmp(word, "search") || !strcmp(word, "domain");
    while ((is_server || is_search) && (value = strtok_r(NULL, " \t\r\n", &rest))) {
      if (is_server && servers->count < SERVERS_MAX)
        servers->count += resolve_literal(value, 53, &servers->at[servers->count]) == 1;
      if (is_search && servers->domain_count < DOMAINS_MAX && strlen(value) < NAME_TEXT_MAX) {
        strcpy(servers->domains[servers->domain_count++], value);
      }
    }
  }
  if (file) fclose(file);
}

static void ask_all(const struct servers *servers, const char *name, struct found *found) {
  for (int try = 0; try < TRIES; try++) {
    for (size_t i = 0; i < servers->count; i++) {
      bool has_answered = ask(&servers->at[i], name, TYPE_A, found);
      has_answered = ask(&servers->at[i], name, TYPE_AAAA, found) || has_answered;
      if (has_answered) return; // "no such name" is an answer too
    }
  }
}

/** True when the server answered, with addresses or without. */
static bool ask(const struct address *server, const char *name, int type, struct found *found) {
  unsigned char query[HEADER + NAME_TEXT_MAX + 8], answer[PACKET];
  size_t length = write_query(query, name, type);
  if (!length) return false;
  ssize_t got = exchange(server, SOCK_DGRAM, query, length, answer);
  if (got > 0 && answer[2] & TRUNCATED) got = exchange(server, SOCK_STREAM, query, length, answer);
  if (got <= 0) return false;
  take_answers(answer, (size_t)got, length, type, found);
  int code = answer[3] & 15;
  return code == 0 || code == 3;
}

static size_t write_query(unsigned char *out, const char *name, int type) {
  size_t at = HEADER;
  memset(out, 0, HEADER);
  if (getrandom(out, 2, 0) != 2) return 0; // an answer must match it, and the random port
  out[2] = 1;                              // recursion desired
  out[5] = 1;                              // one question
  while (*name) {
    size_t label = strcspn(name, ".");
    if (label == 0 || label > 63) return 0;
    out[at++] = (unsigned char)label;
    memcpy(out + at, name, label);
    at += label;
    name += label + (name[label] == '.');
  }
  const unsigned char tail[5] = {0, 0, (unsigned char)type, 0, 1};
  memcpy(out + at, tail, sizeof tail);
  return at + sizeof tail;
}

static bool is_readable(int fd) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  return poll(&poll_fd, 1, TRY_MS) == 1;
}

/** Sends the query and returns the length of an answer to exactly this question, or -1. */
static ssize_t exchange(const struct address *server, int kind, const unsigned char *query, size_t length, unsigned char *answer) {
  int fd = socket(server->at.ss_family, kind | SOCK_CLOEXEC, 0);
  ssize_t got = -1;
  if (fd < 0 || connect(fd, (const struct sockaddr *)&server->at, server->length) < 0) goto end;
  if (kind == SOCK_STREAM) {
    unsigned char prefix[2] = {(unsigned char)(length >> 8), (unsigned char)length};
    size_t have = 0, wanted = 2;
    unsigned char whole[2 + PACKET];
    if (write(fd, prefix, 2) != 2 || write(fd, query, length) != (ssize_t)length) goto end;
    while (have < wanted && is_readable(fd)) {
      ssize_t part = read(fd, whole + have, wanted - have);
      if (part <= 0) goto end;
      have += (size_t)part;
      if (have == 2) wanted = 2 + ((size_t)whole[0] << 8 | whole[1]);
      if (wanted > sizeof whole) wanted = sizeof whole;
    }
    got = have > 2 ? (ssize_t)have - 2 : -1;
    if (got > 0) memcpy(answer, whole + 2, (size_t)got);
  } else if (send(fd, query, length, 0) == (ssize_t)length && is_readable(fd)) {
    got = recv(fd, answer, PACKET, 0);
  }
  bool is_ours = got >= (ssize_t)length && !memcmp(answer, query, 2) && answer[2] & 0x80 &&
                 !memcmp(answer + HEADER, query + HEADER, length - HEADER);
  if (!is_ours) got = -1;
end:
  if (fd >= 0) close(fd);
  return got;
}

static size_t skip_name(const unsigned char *answer, size_t length, size_t at) {
  while (at < length && answer[at]) {
    if (answer[at] >= 0xc0) return at + 2;
    at += 1 + (size_t)answer[at];
  }
  return at + 1;
}

static void take_answers(const unsigned char *answer, size_t length, size_t at, int type, struct found *found) {
  for (int left = answer[6] << 8 | answer[7]; left > 0; left--) {
    at = skip_name(answer, length, at);
    if (at + 10 > length) return;
    int record_type = answer[at] << 8 | answer[at + 1];
    size_t size = (size_t)answer[at + 8] << 8 | answer[at + 9];
    at += 10;
    if (at + size > length) return;
    if (record_type == type && size == (type == TYPE_A ? 4u : 16u)) add(found, type == TYPE_A ? 4 : 6, answer + at);
    at += size;
  }
}
