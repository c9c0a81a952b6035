/* The whole of a document, to be compared with texts that a test works out. */
#pragma once

#include "experiments/shell/document.h"

/* For people: blanks that follow one another, lead a line or end it are one or none. Owned. */
char *said_text(const struct document *d);
/* As data, without blanks. Owned. */
char *said_json(const struct document *d);
/* Fails the test unless both are these; NULL: not asked. */
void shown_is(const struct document *d, const char *text, const char *json);

/* Catch stdout and stderr between the two calls, also of children. Both texts are owned; NULL: not
 * wanted. */
void said_catch(void);
void said_caught(char **out, char **err);
