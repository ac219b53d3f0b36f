/** Who may make an account: anybody, who has an invite, or nobody (`svc user link` still lets people in). */
export const SIGN_UPS = ['invited', 'open', 'closed'] as const;
export type SignUp = (typeof SIGN_UPS)[number];
