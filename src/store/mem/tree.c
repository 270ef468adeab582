/* tree.c - a treap: a search tree by (rank, id) that is at the same time a heap by height(id). */
#include "store/mem/tree.h"

/* Mixes the id (the finaliser of splitmix64), so that heights look random but need no memory. */
static uint64_t height(const tree_node *n)
{
    uint64_t x = n->id + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool below(int64_t rank_a, uint64_t id_a, int64_t rank_b, uint64_t id_b)
{
    return rank_a != rank_b ? rank_a < rank_b : id_a < id_b;
}

void weir__tree_add(tree *t, tree_node *node)
{
    tree_node **at = &t->root;
    uint64_t    h = height(node);
    while (*at && height(*at) > h)
        at = below(node->rank, node->id, (*at)->rank, (*at)->id) ? &(*at)->left : &(*at)->right;
    /* Split what is here into what lies below the node and what lies above it. */
    tree_node *rest = *at, **low = &node->left, **high = &node->right;
    *at = node;
    while (rest) {
        if (below(rest->rank, rest->id, node->rank, node->id)) {
            *low = rest;
            low = &rest->right;
            rest = rest->right;
        } else {
            *high = rest;
            high = &rest->left;
            rest = rest->left;
        }
    }
    *low = *high = NULL;
    t->n++;
}

void weir__tree_remove(tree *t, tree_node *node)
{
    tree_node **at = &t->root;
    while (*at && *at != node)
        at = below(node->rank, node->id, (*at)->rank, (*at)->id) ? &(*at)->left : &(*at)->right;
    if (!*at)
        return;
    /* Join its two sides in its place; all on the left is below all on the right. */
    tree_node *a = node->left, *b = node->right;
    while (a && b) {
        if (height(a) > height(b)) {
            *at = a;
            at = &a->right;
            a = a->right;
        } else {
            *at = b;
            at = &b->left;
            b = b->left;
        }
    }
    *at = a ? a : b;
    node->left = node->right = NULL;
    t->n--;
}

tree_node *weir__tree_first(const tree *t)
{
    tree_node *n = t->root;
    while (n && n->left)
        n = n->left;
    return n;
}

tree_node *weir__tree_last(const tree *t)
{
    tree_node *n = t->root;
    while (n && n->right)
        n = n->right;
    return n;
}

tree_node *weir__tree_after(const tree *t, int64_t rank, uint64_t id)
{
    tree_node *best = NULL;
    for (tree_node *n = t->root; n;) {
        if (below(rank, id, n->rank, n->id)) {
            best = n;
            n = n->left;
        } else {
            n = n->right;
        }
    }
    return best;
}

tree_node *weir__tree_before(const tree *t, int64_t rank, uint64_t id)
{
    tree_node *best = NULL;
    for (tree_node *n = t->root; n;) {
        if (below(n->rank, n->id, rank, id)) {
            best = n;
            n = n->right;
        } else {
            n = n->left;
        }
    }
    return best;
}

bool weir__tree_has(const tree *t, const tree_node *node)
{
    const tree_node *n = t->root;
    while (n && n != node)
        n = below(node->rank, node->id, n->rank, n->id) ? n->left : n->right;
    return n != NULL;
}

bool weir__tree_sound(const tree *t)
{
    size_t           seen = 0;
    const tree_node *last = NULL;
    for (const tree_node *n = weir__tree_first(t); n; n = weir__tree_after(t, n->rank, n->id)) {
        if (last && !below(last->rank, last->id, n->rank, n->id))
            return false;
        if (seen++ > t->n)
            return false;
        last = n;
    }
    return seen == t->n && last == weir__tree_last(t);
}
