/** Who may make an account: every visitor, invited people only, or none (`svc user link` still makes one). */
export const SIGN_UPS = ['invited', 'open', 'closed'] as const;
export type SignUp = (typeof SIGN_UPS)[number];
