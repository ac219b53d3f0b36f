#include "wire/message.h"

#include <string.h>

#include "bounds.h"
#include "wire/cbor-write.h"

bool message_read(struct message *message, uint8_t *frame, size_t length) {
  *message = (struct message){.id = get_u32(frame), .flags = frame[4], .type = {(uint8_t *)"", 0}};
  struct reader reader = {frame + 5, frame + length, false};
  bool has_version = false, has_type = false, has_payload = false;
  struct container map = read_map(&reader);
  while (read_next(&reader, &map)) {
    struct span key = read_text(&reader);
    if (span_is(key, "v")) message->generation = read_uint(&reader), has_version = true;
    else if (span_is(key, "t")) message->type = read_text(&reader), has_type = true;
    else if (span_is(key, "p")) {
      struct span payload = read_bytes(&reader);
      message->payload = (struct reader){payload.at, payload.at + payload.length, false};
      has_payload = true;
    } else read_skip(&reader);
  }
  return !reader.bad && reader.at == reader.end && has_version && has_type && has_payload;
}

bool message_data(struct message *message, struct span *data) {
  static const struct field fields[] = {{"data", field_bytes, 0, true}};
  struct arena none = {0};
  if (read_fields(&message->payload, &none, fields, COUNT(fields), data)) return true;
  message->payload.bad = true;
  return false;
}

uint8_t *message_head(uint8_t *end, uint32_t id, uint8_t flags, const char *type, size_t length, bool is_data) {
  uint8_t head[ENVELOPE_MAX], data[16];
  size_t data_length = 0, type_length = strlen(type), at = FRAME_HEAD;
  if (is_data) {
    memcpy(data,
           "\xa1\x64"
           "data",
           6);
    data_length = 6 + put_head(data + 6, CBOR_BYTES, length);
  }
  memcpy(head + at, "\xa3\x61v", 3), at += 3;
  head[at++] = GENERATION;
  memcpy(head + at, "\x61t", 2), at += 2;
  at += put_head(head + at, CBOR_TEXT, type_length);
  memcpy(head + at, type, type_length), at += type_length;
  memcpy(head + at, "\x61p", 2), at += 2;
  at += put_head(head + at, CBOR_BYTES, data_length + length);
  memcpy(head + at, data, data_length), at += data_length;
  put_u32(head, (uint32_t)(at + length - 4));
  put_u32(head + 4, id);
  head[8] = flags;
  return memcpy(end - at, head, at);
}

uint8_t flags_of(const char *type) {
  static const struct {
    const char *type;
    uint8_t flags;
  } table[] = {
      {"core.pong", FLAG_TERMINAL},
      {"core.touched", FLAG_TERMINAL},
      {"core.error", FLAG_TERMINAL},
      {"core.exec.exited", FLAG_TERMINAL},
      {"core.exec.failed", FLAG_TERMINAL},
      {"core.fs.response", FLAG_TERMINAL},
      {"core.tcp.closed", FLAG_TERMINAL},
      {"core.tcp.failed", FLAG_TERMINAL},
      {"core.exec.request", FLAG_SESSION_START},
      {"core.fs.request", FLAG_SESSION_START},
      {"core.tcp.connect", FLAG_SESSION_START},
      {"core.shutdown", FLAG_SHUTDOWN},
      {"svc.udp.open", FLAG_SESSION_START},
      {"svc.udp.failed", FLAG_TERMINAL},
      {"svc.detached.start", FLAG_SESSION_START},
      {"svc.watch.start", FLAG_SESSION_START},
  };
  for (size_t i = 0; i < COUNT(table); i++) {
    if (!strcmp(table[i].type, type)) return table[i].flags;
  }
  return 0;
}
