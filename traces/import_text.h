/* Lengths from texts, where a source keeps what was said and not how many tokens it was. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

/* Of UTF-8. */
uint64_t import_text_characters(const char *s);
/* Characters that a request to an OpenAI server asks with: its payload, JSON as text. */
uint64_t import_text_sent(const char *payload);
/* Pieces of the answer in streamed responses (texts, or objects with one in "response"), a token
 * each; empty ones do not count. */
uint64_t import_text_pieces(const cJSON *responses);
/* The last number after "key": in the texts of the responses, or NAN. */
double import_text_usage(const cJSON *responses, const char *key);
