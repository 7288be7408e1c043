"""Clean: planets around a sun, in plain Python with local names; there is nothing but the arithmetic."""
import sys


def advance(bodies, steps, dt=0.01):
    for _ in range(steps):
        for i, (x, y, _, _, _) in enumerate(bodies):
            ax = ay = 0.0
            for j, (ox, oy, _, _, mass) in enumerate(bodies):
                if i != j:
                    dx, dy = ox - x, oy - y
                    force = mass * (dx * dx + dy * dy + 0.01) ** -1.5
                    ax += dx * force
                    ay += dy * force
            bodies[i][2] += ax * dt
            bodies[i][3] += ay * dt
        for body in bodies:
            body[0] += body[2] * dt
            body[1] += body[3] * dt
    return bodies


bodies = [[float(i), i * 0.5, 0.0, 0.1 * i, 1.0 / (i + 1)] for i in range(8)]
print(f"{advance(bodies, 80000)[0][0]:.6f}", file=sys.stderr)
