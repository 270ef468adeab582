/* tree.h - an ordered set of nodes by (rank, id), inside the things it orders: no allocation, so
 * nothing here can fail. A treap whose heights come from the ids: about 2 ln n steps a call. */
#ifndef WEIR_STORE_MEM_TREE_H
#define WEIR_STORE_MEM_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tree_node {
    struct tree_node *left, *right;
    int64_t           rank;
    uint64_t          id;           /* never 0 */
} tree_node;

typedef struct tree {               /* {0} is empty */
    tree_node *root;
    size_t     n;
} tree;

/* The node's rank and id say where; they must not change while it is in, nor be in there twice. */
void weir__tree_add(tree *t, tree_node *node);
void weir__tree_remove(tree *t, tree_node *node);

tree_node *weir__tree_first(const tree *t);                                /* NULL: empty */
tree_node *weir__tree_last(const tree *t);
/* The nearest node beyond that place, upwards or downwards; NULL: none. */
tree_node *weir__tree_after(const tree *t, int64_t rank, uint64_t id);
tree_node *weir__tree_before(const tree *t, int64_t rank, uint64_t id);
bool       weir__tree_has(const tree *t, const tree_node *node);

/* Are the nodes in order, and as many as the count says? */
bool weir__tree_sound(const tree *t);

#endif
