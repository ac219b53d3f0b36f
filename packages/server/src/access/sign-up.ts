/** Who may make an account: everyone, invited people, or no one (`svc user link` still lets people in). */
export const SIGN_UPS = ['invited', 'open', 'closed'] as const;
export type SignUp = (typeof SIGN_UPS)[number];
