/* Prints Perl's version, the size of an interpreter, and where the members of its structures are. */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"

#define OFFSET(type, member) printf("%zu ", offsetof(type, member))

#if PERL_VERSION >= 36
#define NAMES_IN_BODY 1
#define NAMES offsetof(struct xpvhv_with_aux, xhv_aux)
#else
#define NAMES_IN_BODY 0
#define NAMES sizeof(XPVHV)
#endif

int main(void)
{
    printf("%d %zu ", PERL_VERSION, sizeof(struct interpreter));
    OFFSET(struct interpreter, Icurcop);
    OFFSET(struct interpreter, Icurstackinfo);
    OFFSET(struct interpreter, Iphase);
    OFFSET(PERL_SI, si_type);
    printf("%zu ", sizeof(PERL_CONTEXT));
    OFFSET(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.cv);
    OFFSET(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_format.cv);
    printf("%d %zu ", NAMES_IN_BODY, (size_t)NAMES);
    OFFSET(PERL_SI, si_cxstack);
    OFFSET(PERL_SI, si_prev);
    OFFSET(PERL_SI, si_cxix);
    printf("%d ", PERLSI_SORT);
    OFFSET(PERL_CONTEXT, cx_u.cx_blk.blku_oldcop);
    OFFSET(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.retop);
    OFFSET(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_format.retop);
    OFFSET(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_eval.retop);
    printf("%d %d %d %d %d ", CXTYPEMASK, CXt_SUB, CXt_FORMAT, CXt_EVAL, CXp_TRYBLOCK);
    OFFSET(COP, cop_line);
    OFFSET(COP, cop_file);
    printf("%d ", PERL_PHASE_RUN);
    OFFSET(XPVCV, xcv_stash);
    OFFSET(XPVCV, xcv_start_u);
    OFFSET(XPVCV, xcv_root_u);
    OFFSET(XPVCV, xcv_gv_u);
    OFFSET(XPVCV, xcv_file);
    OFFSET(XPVCV, xcv_flags);
    printf("%d %d ", CVf_NAMED, CVf_LEXICAL);
    OFFSET(XPVGV, xiv_u.xivu_namehek);
    OFFSET(XPVGV, xnv_u.xgv_stash);
    OFFSET(HV, sv_any);
    OFFSET(HV, sv_u.svu_hash);
    OFFSET(XPVHV, xhv_max);
    OFFSET(struct xpvhv_aux, xhv_name_u);
    OFFSET(struct xpvhv_aux, xhv_riter);
    OFFSET(struct xpvhv_aux, xhv_name_count);
    OFFSET(HEK, hek_len);
    OFFSET(HEK, hek_key);
    return 0;
}
