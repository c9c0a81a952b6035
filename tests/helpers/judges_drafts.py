"""How many tokens are drafted (docs/clauses.md D.7, E.20, policies/common/speculate.h), as a part of policies (judges.py)."""


class Acceptance:
    """A step hits, and then each further token is right, by frequencies, which start as of four steps."""

    def __init__(self):
        self.steps, self.hits, self.tried, self.right, self.idle = 4.0, 2.0, 4.0, 3.0, 0

    def saw(self, p):
        """Verifications whose request continues."""
        for s, emitted in zip(p.segments, p.emitted):
            drafted, accepted = s.n_tokens - 1, emitted - 1
            if s.role == "verify" and drafted and not s.request.left:
                self.steps += 1
                self.hits += accepted > 0
                if accepted:
                    self.right += accepted - 1
                    self.tried += min(accepted, drafted - 1)

    def emitted(self, n):
        h, alpha = self.hits / self.steps, self.right / self.tried
        return 1 + h * sum(alpha ** k for k in range(n))

    def length(self, offered, stride, ns):
        """Most expected tokens per time, the shortest among equals; one in 32 steps, where none would be."""
        if not offered:
            return 0
        some = [0] + [n for n in range(1, offered) if (n + 1) % stride == 0] + [offered]
        n = max(some, key=lambda n: (self.emitted(n) / ns(n), -n))
        self.idle = 0 if n else self.idle + 1
        if self.idle == 32:
            self.idle, n = 0, 1
        return n
