/* Pictures are made smaller: what a piece becomes, by hand. */
#include <stdlib.h>
#include <string.h>

#include "plots/svg_compact.h"
#include "sim/base/scope.h"
#include "tests/helpers/suite.h"

/* Within a picture whose first group is the canvas: only what is between is compared. */
static const struct {
    const char *piece, *becomes;
} pieces[] = {
    /* Numbers to a tenth; lines along an axis are steps; a polygon closes. */
    {"<path stroke='red' d='M10.04,20.06 L10.04,30.26'/>",
     "<path stroke='red' d='M10 20.1v10.2'/>"},
    {"<path stroke='red' d='M10,20 L5.5,20 L5.5,18'/>", "<path stroke='red' d='M10 20h-4.5v-2'/>"},
    {"<path stroke='red' d='M10,20 L11,22 L13.26,-1'/>",
     "<path stroke='red' d='M10 20l1 2l2.3-23'/>"},
    {"<path stroke='red' d='M0,0 L1,0 L3,0 L2,0 L2,1'/>",
     "<path stroke='red' d='M0 0h3h-1v1'/>"}, /* on the way; there and back */
    {"<polygon fill='red' points='0,0 4,0 4,3'/>", "<path fill='red' d='M0 0h4v3z'/>"},
    {"<path stroke='red' d='M0,0 L4,0 L4,3 Z'/>", "<path stroke='red' d='M0 0h4v3z'/>"},
    {"<path stroke='red' d='M0,0 L1,1 M5,5 L6,5'/>", "<path stroke='red' d='M0 0l1 1M5 5h1'/>"},
    /* A point is nothing, and neither is a line to itself. */
    {"<path stroke='red' d='M3,4'/>", ""},
    {"<path stroke='red' d='M0,0 L0,0 M1,1 L2,1'/>", "<path stroke='red' d='M1 1h1'/>"},
    /* Curves stay as they are, to a tenth. */
    {"<path stroke='red' d='M 0.04,0  C 1.06,2  3,4.99 5,6'/>",
     "<path stroke='red' d='M0,0 C1.1,2 3,5 5,6'/>"},
    /* Equal neighbours are one path; of other attributes they are not. */
    {"<path stroke='red' d='M0,0 L1,0'/>\n<path stroke='red' d='M5,5 L5,6'/>",
     "<path stroke='red' d='M0 0h1M5 5v1'/>"},
    {"<path stroke='red' d='M0,0 L1,0'/><path stroke='blue' d='M5,5 L5,6'/>",
     "<path stroke='red' d='M0 0h1'/><path stroke='blue' d='M5 5v1'/>"},
    {"<path stroke='red' d='M0,0 L1,0'/><g><rect id='r' x='1' y='2'/></g><path stroke='red' "
     "d='M5,5 L5,6'/>",
     "<path stroke='red' d='M0 0h1'/><g><rect id='r' x='1' y='2'/></g><path stroke='red' d='M5 "
     "5v1'/>"},
    /* A path with a name stays alone. */
    {"<path id='x' d='M1.26,2 L3,4'/>", "<path id='x' d='M1.3,2 3,4'/>"},
    /* Colours are short, where they can be. */
    {"<path stroke='rgb( 17 ,  34 , 255 )' d='M0,0 L1,0'/>", "<path stroke='#12f' d='M0 0h1'/>"},
    {"<path stroke='rgb( 16 ,  34 , 255 )' d='M0,0 L1,0'/>", "<path stroke='#1022ff' d='M0 0h1'/>"},
    /* Attributes with their default values go. */
    {"<path stroke='red' stroke-linecap='butt' class='gridline' stroke-linejoin='miter' d='M0,0 "
     "L1,0'/>",
     "<path stroke='red' d='M0 0h1'/>"},
    {"<path stroke='red' stroke-linecap='round' d='M0,0 L1,0'/>",
     "<path stroke='red' stroke-linecap='round' d='M0 0h1'/>"},
    /* A group that says nothing new; equal neighbours; an empty one. */
    {"<g fill='none' color='black' stroke='currentColor' stroke-width='1.12'><use x='1'/></g>",
     "<g><use x='1'/></g>"},
    {"<g stroke-width='2.24'><use x='1'/></g><g stroke-width='2.24'><use x='2'/></g>",
     "<g stroke-width='2.24'><use x='1'/><use x='2'/></g>"},
    {"<g stroke-width='2.24'><use x='1'/></g><g stroke-width='3'><use x='2'/></g>",
     "<g stroke-width='2.24'><use x='1'/></g><g stroke-width='3'><use x='2'/></g>"},
    {"<g stroke-width='2.24'>\n\t</g><use x='1'/>", "<use x='1'/>"},
    /* Inside a group that differs, an inherited value must be said again. */
    {"<g fill='red'><g fill='none'><use x='1'/></g></g>",
     "<g fill='red'><g fill='none'><use x='1'/></g></g>"},
    {"<g id='gnuplot_plot_1'><use x='1'/></g>", "<g><use x='1'/></g>"},
    {"<g id='mine'><use x='1'/></g>", "<g id='mine'><use x='1'/></g>"},
    /* A group of one text is the text, at whole pixels. */
    {"<g transform=\"translate(10.6,20.4)\" stroke=\"none\" fill=\"rgb(34,34,34)\" "
     "font-size=\"13.00\">\n\t<text><tspan>a</tspan></text>\n</g>",
     "<text x='11' y='20'><tspan>a</tspan></text>"},
    {"<g transform=\"translate(1,2)\" fill=\"rgb(255,0,0)\" text-anchor=\"end\" "
     "font-size=\"10.00\"><text>it's</text></g>",
     "<text x='1' y='2' style='fill:#f00' text-anchor='end' font-size='10.00'>it's</text>"},
    {"<g transform=\"translate(1.26,2) rotate(-90)\" text-anchor=\"middle\"><text>b</text></g>",
     "<text transform='translate(1.3,2) rotate(-90)' text-anchor='middle'>b</text>"},
    {"<g transform=\"translate(1,2)\"><text>b</text><text>c</text></g>",
     "<g transform='translate(1,2)'><text>b</text><text>c</text></g>"},
    /* Comments, titles and descriptions go; text between tags stays, blanks do not. */
    {"<!-- a > b --><title>t</title><desc>d</desc><use x='1'/>", "<use x='1'/>"},
    {"<text>a  b</text>\n\n  <use x='1'/>", "<text>a  b</text><use x='1'/>"},
    /* An apostrophe is in a value, and a '>' in quotes. */
    {"<use href=\"it's\" x='1.04'/>", "<use href='it&apos;s' x='1'/>"},
    {"<use href='a>b'/>", "<use href='a>b'/>"},
    {"<rect width='5'/><use id='y'/>",
     "<rect width='5' stroke='none'/><use id='y'/>"}, /* the background has no name */
    /* A value without quotes is none, and neither is a name without a value. */
    {"<use y='1' x=2/>", "<use y='1'/>"},
    {"<use y='1' x/>", "<use y='1'/>"},
    {"<use y = \"1\"\n\tx='2' />", "<use y='1' x='2'/>"},
    /* An element that is dropped leaves nothing in the next one. */
    {"<path stroke='red' data='a long value that is dropped with its path' d='M3,4'/>"
     "<g transform=\"translate(1,2)\" fill=\"rgb(255,0,0)\"><text>a</text></g>",
     "<text x='1' y='2' style='fill:#f00'>a</text>"},
    /* A label is at a place, not turned, and of one text alone. */
    {"<g transform='translate(1.5 2.5)'><text>a</text></g>",
     "<text transform='translate(1.5 2.5)'>a</text>"},
    {"<g transform='rotate(1,2)'><text>a</text></g>", "<text transform='rotate(1,2)'>a</text>"},
    {"<g transform='translate(-0.6,99.5)'><text>a</text></g>", "<text x='-1' y='100'>a</text>"},
    {"<g transform='translate(1,2)'><use x='1'/></g>",
     "<g transform='translate(1,2)'><use x='1'/></g>"},
    {"<g fill='red' transform='translate(1,2)'><text>a</text></g>",
     "<g fill='red' transform='translate(1,2)'><text>a</text></g>"},
    {"<g transform='translate(1,2)' fill='#222'><text></text></g>", "<text x='1' y='2'></text>"},
    {"<g transform='translate(1,2)' fill='none'><text>a</text></g>",
     "<text x='1' y='2' style='fill:none'>a</text>"},
    {"<use x='-0.04' y='0.05'/>", "<use x='0' y='0.1'/>"},
};

static const char head[] = "<svg font-family='sans-serif' font-size='13'><g id='canvas' "
                           "fill='none' color='#000' stroke='currentColor' "
                           "stroke-width='1.12'><style>text{fill:#222;stroke:none}</style>";

START_TEST(a_piece_becomes_what_it_says)
{
    OWNED char *whole =
        xformat("<?xml version='1.0'?><svg><g id='canvas'>%s</g></svg>", pieces[_i].piece);
    OWNED char *got = svg_compact(whole);
    OWNED char *want = pieces[_i].becomes[0] != '\0'
                           ? xformat("%s%s</g></svg>", head, pieces[_i].becomes)
                           : xformat("%s</svg>", "<svg font-family='sans-serif' font-size='13'>");
    if (pieces[_i].becomes[0] == '\0') { /* the canvas holds its style, so it stays */
        OWNED char *empty = xformat("%s</g></svg>", head);
        ck_assert_msg(strcmp(got, empty) == 0 || strcmp(got, want) == 0, "%s\nbecomes\n%s",
                      pieces[_i].piece, got);
    } else {
        ck_assert_msg(strcmp(got, want) == 0, "%s\nbecomes\n%s\nnot\n%s", pieces[_i].piece, got,
                      want);
    }
}
END_TEST

/* Shapes of points that nobody uses are left out, also those that only they use. */
START_TEST(unused_points_are_dropped)
{
    OWNED char *got = svg_compact("<svg><defs>\n<circle id='gpDot' r='0.5'/>\n<path id='gpPt0' "
                                  "d='M-1,0 h2'/>\n<path id='gpPt1' d='M-1,-1'/>\n"
                                  "<circle id='gpPt6' cx='0'/>\n<use xlink:href='#gpPt6' "
                                  "id='gpPt7' fill='currentColor'/>\n</defs>\n"
                                  "<g><use xlink:href='#gpPt1' x='3'/></g></svg>");
    ck_assert_msg(strstr(got, "gpPt1'") != NULL && strstr(got, "id='gpPt1'") != NULL, "%s", got);
    ck_assert_ptr_null(strstr(got, "gpDot"));
    ck_assert_ptr_null(strstr(got, "gpPt0"));
    ck_assert_ptr_null(strstr(got, "gpPt6"));
    ck_assert_ptr_null(strstr(got, "gpPt7"));
    ck_assert_ptr_nonnull(strstr(got, "<defs><path id='gpPt1' d='M-1,-1'/></defs>"));
}
END_TEST

/* 40 groups within each other, each of its own: as many ends as beginnings, and all of them. */
START_TEST(deep_groups_keep_their_ends)
{
    struct text t = {0};
    text_string(&t, "<svg>");
    for (int i = 0; i < 40; i++) {
        text_format(&t, "<g id='n%d'>", i);
    }
    text_string(&t, "<use x='1'/>");
    for (int i = 0; i < 40; i++) {
        text_string(&t, "</g>");
    }
    text_string(&t, "</svg>");
    OWNED char *got = svg_compact(text_end(&t));
    int begins = 0;
    int ends = 0;
    for (const char *p = got; *p != '\0'; p++) {
        begins += strncmp(p, "<g ", 3) == 0;
        ends += strncmp(p, "</g>", 4) == 0;
    }
    ck_assert_int_eq(begins, 40);
    ck_assert_int_eq(ends, 40);
    ck_assert_ptr_nonnull(strstr(got, "<g id='n39'><use x='1'/></g>"));
    text_fini(&t);
}
END_TEST

static const struct suite_row suite[] = {
    CASE("svg compact"),
    LOOP(a_piece_becomes_what_it_says, sizeof pieces / sizeof pieces[0]),
    TEST(unused_points_are_dropped),
    TEST(deep_groups_keep_their_ends),
};
SUITE_MAIN("svg compact", suite)
