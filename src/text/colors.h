/* The operator's colour, and what is made of it so that text can be read in both schemes. */
#ifndef TEXT_COLORS_H
#define TEXT_COLORS_H

#include "base/str.h"

struct brand_colors { /* each as "#2f5bea" */
    char accent[8], on_accent[8];
    char link_light[8], link_dark[8];
    char edge_light[8], edge_dark[8]; /* of what is filled with the accent */
    bool adjusted;                    /* the accent itself had to change */
};

/* Text on the accent and links have a contrast of at least 4.5:1: colours are made darker or lighter until they do. ERR_INPUT
 * when it is no #rrggbb. */
enum err brand_colors(struct str color, struct brand_colors *ret) MUST_CHECK;

#endif
